package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// bindLoop binds every unbound pod of the namespace to the next node in turn: nothing but POST binding, the
// most that this API server can bind.
func bindLoop(ctx context.Context, client *kubernetes.Clientset, o options) error {
	return runBindLoop(ctx, client, o, "bind-loop", false)
}

// bindEventLoop posts one Scheduled event after each binding as well, as a scheduler does.
func bindEventLoop(ctx context.Context, client *kubernetes.Clientset, o options) error {
	return runBindLoop(ctx, client, o, "bind-event-loop", true)
}

func runBindLoop(ctx context.Context, client *kubernetes.Clientset, o options, name string, withEvents bool) error {
	all, err := listPods(ctx, client, o)
	if err != nil {
		return err
	}
	var pods []corev1.Pod
	for _, pod := range all {
		if pod.Spec.NodeName == "" {
			pods = append(pods, pod)
		}
	}
	nodes, err := listNodeNames(ctx, client, "")
	if err != nil {
		return err
	}
	if len(pods) == 0 || len(nodes) == 0 {
		return fmt.Errorf("namespace %s has %d unbound pods and the cluster %d nodes: nothing to bind", o.namespace, len(pods), len(nodes))
	}
	start, before := time.Now(), cpuSeconds()
	err = each(len(pods), o, func(i int) error {
		pod, node := &pods[i], nodes[i%len(nodes)]
		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		}
		if err := client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
			return err
		}
		if !withEvents {
			return nil
		}
		now := time.Now()
		event := &eventsv1.Event{
			ObjectMeta:          metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + "." + strconv.FormatInt(now.UnixNano(), 16)},
			EventTime:           metav1.NewMicroTime(now),
			ReportingController: o.scheduler,
			ReportingInstance:   o.scheduler + "-peer",
			Action:              "Binding",
			Reason:              "Scheduled",
			Type:                corev1.EventTypeNormal,
			Note:                fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node),
			Regarding: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			},
		}
		_, err := client.EventsV1().Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{})
		return err
	})
	if err == nil {
		report(name, len(pods), start, map[string]any{
			"inflight": o.inflight, "cpu_us": (cpuSeconds() - before) * 1e6 / float64(len(pods)),
		})
	}
	return err
}

// observe counts what a watch of the namespace shows: pods that become bound and pods that get a Scheduled
// event. It prints {"ready":true} once both watches run, and the result when both counts are reached, or when no
// event has come for o.idle although all pods are bound: a scheduler may drop events.
func observe(ctx context.Context, client *kubernetes.Clientset, o options) error {
	pods, podsVersion, err := currentPods(ctx, client, o)
	if err != nil {
		return err
	}
	podWatch := follow(ctx, podsVersion, func(options metav1.ListOptions) (watch.Interface, error) {
		return client.CoreV1().Pods(o.namespace).Watch(ctx, options)
	})
	events, err := client.EventsV1().Events(o.namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	eventWatch := follow(ctx, events.ResourceVersion, func(options metav1.ListOptions) (watch.Interface, error) {
		return client.EventsV1().Events(o.namespace).Watch(ctx, options)
	})
	bound, announced := span{}, span{}
	silence := time.NewTicker(time.Second)
	defer silence.Stop()
	printLine(map[string]any{"ready": true, "already_bound": len(pods)})
	for bound.count < o.count || announced.count < o.events {
		if o.idle > 0 && bound.count >= o.count && time.Since(later(bound, announced)) > o.idle {
			break
		}
		select {
		case <-silence.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d pods bound, %d of %d with a Scheduled event", ctx.Err(), bound.count, o.count, announced.count, o.events)
		case item, ok := <-podWatch:
			if !ok {
				return errors.New("the watch of pods ended")
			}
			if pod, is := item.(*corev1.Pod); is && pod.Spec.NodeName != "" && !pods[pod.UID] {
				pods[pod.UID] = true
				bound.add()
			}
		case item, ok := <-eventWatch:
			if !ok {
				return errors.New("the watch of events ended")
			}
			if event, is := item.(*eventsv1.Event); is && event.Reason == "Scheduled" && announced.first(event.Regarding.UID) {
				announced.add()
			}
		}
	}
	printLine(map[string]any{
		"bench": "observe", "bound": bound.count, "bind_seconds": bound.seconds(), "binds_per_s": bound.rate(),
		"events": announced.count, "event_seconds": announced.seconds(), "events_per_s": announced.rate(),
		"to_last_event_seconds": later(bound, announced).Sub(bound.begin).Seconds(),
		"first_bind_unix_ms":    bound.begin.UnixMilli(), "last_bind_unix_ms": bound.end.UnixMilli(), "last_event_unix_ms": announced.end.UnixMilli(),
	})
	return nil
}

// span is a count of things seen, from the first to the last of them.
type span struct {
	count      int
	begin, end time.Time
	seen       map[types.UID]bool
}

func (s *span) add() {
	s.end = time.Now()
	if s.count == 0 {
		s.begin = s.end
	}
	s.count++
}

func (s *span) first(uid types.UID) bool {
	if s.seen == nil {
		s.seen = map[types.UID]bool{}
	}
	if s.seen[uid] {
		return false
	}
	s.seen[uid] = true
	return true
}

func (s *span) seconds() float64 { return s.end.Sub(s.begin).Seconds() }

func (s *span) rate() float64 { return float64(s.count) / max(s.seconds(), 1e-9) }

func later(a, b span) time.Time {
	if a.end.After(b.end) {
		return a.end
	}
	return b.end
}

// currentPods returns the pods of the namespace that are bound already, and the version to watch from.
func currentPods(ctx context.Context, client *kubernetes.Clientset, o options) (map[types.UID]bool, string, error) {
	bound := map[types.UID]bool{}
	list := metav1.ListOptions{Limit: page}
	for {
		got, err := client.CoreV1().Pods(o.namespace).List(ctx, list)
		if err != nil {
			return nil, "", err
		}
		for _, pod := range got.Items {
			if pod.Spec.NodeName != "" {
				bound[pod.UID] = true
			}
		}
		if list.Continue = got.Continue; list.Continue == "" {
			return bound, got.ResourceVersion, nil
		}
	}
}

// follow watches from a version on, through closed connections, until the context ends or the API server
// refuses to continue.
func follow(ctx context.Context, version string, open func(metav1.ListOptions) (watch.Interface, error)) <-chan runtime.Object {
	items := make(chan runtime.Object, 1024)
	go func() {
		defer close(items)
		for ctx.Err() == nil {
			stream, err := open(metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
			if err != nil {
				return
			}
			for event := range stream.ResultChan() {
				if event.Type == watch.Error {
					stream.Stop()
					return
				}
				if object, err := meta.Accessor(event.Object); err == nil {
					version = object.GetResourceVersion()
				}
				if event.Type == watch.Added || event.Type == watch.Modified {
					select {
					case items <- event.Object:
					case <-ctx.Done():
					}
				}
			}
		}
	}()
	return items
}
