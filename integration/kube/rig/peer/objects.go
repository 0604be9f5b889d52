package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// page is the number of objects per list request.
const page = 2000

func quantities(o options) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: o.cpu, corev1.ResourceMemory: o.memory} {
		if text == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", name, text, err)
		}
		list[name] = quantity
	}
	return list, nil
}

// createNodes registers nodes as a kubelet does: ready, with their allocatable resources.
func createNodes(ctx context.Context, client *kubernetes.Clientset, o options) error {
	allocatable, err := quantities(o)
	if err != nil {
		return err
	}
	pods, err := resource.ParseQuantity(o.maxPods)
	if err != nil {
		return fmt.Errorf("max-pods %q: %w", o.maxPods, err)
	}
	allocatable[corev1.ResourcePods] = pods
	start := time.Now()
	err = each(o.count, o, func(i int) error {
		name := fmt.Sprintf("%s%d", o.prefix, i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3),
			}},
			Status: corev1.NodeStatus{
				Capacity: allocatable, Allocatable: allocatable,
				Conditions: []corev1.NodeCondition{{
					Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
					LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
				}},
			},
		}
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
	if err == nil {
		report("create-nodes", o.count, start, nil)
	}
	return err
}

func createPods(ctx context.Context, client *kubernetes.Clientset, o options) error {
	requests, err := quantities(o)
	if err != nil {
		return err
	}
	no := false
	start := time.Now()
	err = each(o.count, o, func(i int) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s%d", o.prefix, i), Namespace: o.namespace, Labels: map[string]string{"app": "peer"},
			},
			Spec: corev1.PodSpec{
				SchedulerName: o.scheduler, AutomountServiceAccountToken: &no,
				Containers: []corev1.Container{{
					Name: "main", Image: "registry.example/app:1", Resources: corev1.ResourceRequirements{Requests: requests},
				}},
			},
		}
		_, err := client.CoreV1().Pods(o.namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err == nil {
		report("create-pods", o.count, start, nil)
	}
	return err
}

// listPods returns the pods of the namespace whose names begin with the prefix.
func listPods(ctx context.Context, client *kubernetes.Clientset, o options) ([]corev1.Pod, error) {
	var all []corev1.Pod
	list := metav1.ListOptions{Limit: page}
	for {
		got, err := client.CoreV1().Pods(o.namespace).List(ctx, list)
		if err != nil {
			return nil, err
		}
		for _, pod := range got.Items {
			if len(pod.Name) >= len(o.prefix) && pod.Name[:len(o.prefix)] == o.prefix {
				all = append(all, pod)
			}
		}
		if list.Continue = got.Continue; list.Continue == "" {
			return all, nil
		}
	}
}

func listNodeNames(ctx context.Context, client *kubernetes.Clientset, prefix string) ([]string, error) {
	var names []string
	list := metav1.ListOptions{Limit: page}
	for {
		got, err := client.CoreV1().Nodes().List(ctx, list)
		if err != nil {
			return nil, err
		}
		for _, node := range got.Items {
			if len(node.Name) >= len(prefix) && node.Name[:len(prefix)] == prefix {
				names = append(names, node.Name)
			}
		}
		if list.Continue = got.Continue; list.Continue == "" {
			return names, nil
		}
	}
}

// deletePods deletes at once, without waiting for a kubelet that does not exist.
func deletePods(ctx context.Context, client *kubernetes.Clientset, o options) error {
	pods, err := listPods(ctx, client, o)
	if err != nil {
		return err
	}
	now := int64(0)
	start := time.Now()
	err = each(len(pods), o, func(i int) error {
		err := client.CoreV1().Pods(o.namespace).Delete(ctx, pods[i].Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err == nil {
		report("delete-pods", len(pods), start, nil)
	}
	return err
}

func deleteNodes(ctx context.Context, client *kubernetes.Clientset, o options) error {
	names, err := listNodeNames(ctx, client, o.prefix)
	if err != nil {
		return err
	}
	start := time.Now()
	err = each(len(names), o, func(i int) error {
		err := client.CoreV1().Nodes().Delete(ctx, names[i], metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err == nil {
		report("delete-nodes", len(names), start, nil)
	}
	return err
}
