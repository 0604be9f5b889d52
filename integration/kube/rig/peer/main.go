// Peer is the yardstick of the kube tests and benchmarks: bare client-go loops against an API server, and the
// fast creation, deletion and observation of many objects. Every command prints one JSON object per line on
// standard output and words on standard error; exit 0 means that all of it was done.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// options are the flags that all commands share; each command reads those that concern it.
type options struct {
	kubeconfig string
	namespace  string
	prefix     string
	count      int
	inflight   int
	cpu        string
	memory     string
	maxPods    string
	scheduler  string
	events     int
	idle       time.Duration
	timeout    time.Duration
}

var commands = map[string]func(context.Context, *kubernetes.Clientset, options) error{
	"create-nodes":    createNodes,
	"delete-nodes":    deleteNodes,
	"create-pods":     createPods,
	"delete-pods":     deletePods,
	"bind-loop":       bindLoop,
	"bind-event-loop": bindEventLoop,
	"observe":         observe,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: peer create-nodes|delete-nodes|create-pods|delete-pods|bind-loop|bind-event-loop|observe [flags]")
		os.Exit(2)
	}
	var o options
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file")
	flags.StringVar(&o.namespace, "namespace", "default", "namespace of the pods")
	flags.StringVar(&o.prefix, "prefix", "", "first part of the names")
	flags.IntVar(&o.count, "count", 0, "number of objects; observe: binds to wait for")
	flags.IntVar(&o.inflight, "inflight", 64, "requests under way at once")
	flags.StringVar(&o.cpu, "cpu", "", "CPU of a node or requested by a pod")
	flags.StringVar(&o.memory, "memory", "", "memory of a node or requested by a pod")
	flags.StringVar(&o.maxPods, "max-pods", "110", "pods that a node takes")
	flags.StringVar(&o.scheduler, "scheduler", "default-scheduler", "schedulerName of the pods; reportingController of the events")
	flags.IntVar(&o.events, "events", 0, "observe: pods with a Scheduled event to wait for")
	flags.DurationVar(&o.idle, "idle", 0, "observe: end after so long without a new event once all pods are bound; 0: never")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "longest run")
	_ = flags.Parse(os.Args[2:])

	client, err := connect(o)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
		defer cancel()
		err = commands[os.Args[1]](ctx, client, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "peer %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// connect makes a client without a rate limit that speaks protobuf, the fastest that client-go offers.
func connect(o options) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.UserAgent = "troupe-peer"
	return kubernetes.NewForConfig(config)
}

// each runs work for 0..n-1 with o.inflight of them under way at once, and reports the first error.
func each(n int, o options, work func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for range min(o.inflight, n) {
		group.Add(1)
		go func() {
			defer group.Done()
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := work(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		}()
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// report prints a finished command: how many, in what time, at what cost of this process.
func report(name string, n int, start time.Time, more map[string]any) {
	seconds := time.Since(start).Seconds()
	line := map[string]any{
		"bench":    name,
		"count":    n,
		"seconds":  seconds,
		"per_s":    float64(n) / max(seconds, 1e-9),
		"cpu_us":   cpuSeconds() * 1e6 / float64(max(n, 1)),
		"inflight": 0,
	}
	for key, value := range more {
		line[key] = value
	}
	printLine(line)
}

func printLine(line map[string]any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	of := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return of(usage.Utime) + of(usage.Stime)
}
