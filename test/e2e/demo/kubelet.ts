import { setTimeout as sleep } from 'node:timers/promises';
import { createEventRecorder, type EventRecorder } from '../../../kube/event-recorder.ts';
import { type Informer, openInformer } from '../../../kube/informer.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import type { ContainerdNode, RunningPod } from '../../support/containerd-node.ts';
import type { Cluster } from '../../system/cluster.ts';
import { podSpecOf } from './pods.ts';

/** Pause before another sandbox is tried. */
const RETRY_MS = 500;

/**
 * Stands in for a kubelet: follows the Pods of its node in the API server, runs them by the container runtime, writes
 * their addresses into their status, tells in events what failed, tries again, and takes away what was deleted.
 */
export class Kubelet {
  #node: ContainerdNode;
  #cluster: Cluster;
  #informer: Informer<KubeObject>;
  #events: EventRecorder;
  #running = new Map<string, RunningPod>();
  #kept = new Map<string, Promise<void>>();
  #ending = new AbortController();
  #following: Promise<void> = Promise.resolve();

  constructor(node: ContainerdNode, cluster: Cluster) {
    this.#node = node;
    this.#cluster = cluster;
    const common = { client: cluster.admin, clock: systemClock, log: silentLogger, random: seededRandom(1) };
    this.#informer = openInformer({
      ...common,
      type: PODS,
      query: { fieldSelector: `spec.nodeName=${node.name}` },
      decode: (object) => object,
    });
    this.#events = createEventRecorder({ ...common, component: 'kubelet', host: node.name });
  }

  /** Begins to follow the node's Pods. Called once. */
  start(): void {
    this.#informer.subscribe(({ key }) => this.#wake(key));
    this.#following = this.#informer.start(this.#ending.signal);
  }

  /** The Pods that run. */
  get pods(): readonly RunningPod[] {
    return [...this.#running.values()];
  }

  /** Ends its own work; Pods that run are left to the runtime. Idempotent. */
  async close(): Promise<void> {
    this.#ending.abort();
    await Promise.all([this.#following, ...this.#kept.values()]);
  }

  #wake(key: string): void {
    if (this.#kept.has(key)) return;
    const kept = this.#keep(key)
      .catch(() => undefined)
      .finally(() => this.#kept.delete(key));
    this.#kept.set(key, kept);
  }

  /** Brings one Pod to what its object says. */
  async #keep(key: string): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const object = this.#informer.get(key);
      const running = this.#running.get(key);
      const isWanted = object !== undefined && object.metadata.deletionTimestamp === undefined;
      if (isWanted === (running !== undefined)) {
        // Told once more: what came while this was under way.
        if (object !== undefined && !isWanted) await this.#cluster.removePod(object.metadata.name, object.metadata.uid);
        return;
      }
      if (running !== undefined) await this.#remove(key, running);
      else if (object !== undefined && !(await this.#run(key, object))) await this.#pause();
    }
  }

  async #run(key: string, object: KubeObject): Promise<boolean> {
    const { name, namespace = '', uid } = object.metadata;
    const ref = { namespace, name };
    try {
      const pod = await this.#node.runPod(podSpecOf(object));
      this.#running.set(key, pod);
      await this.#cluster.admin.patch(PODS, ref, { kind: 'merge', body: runningStatus(pod.ip), subresource: 'status' });
      return true;
    } catch (error) {
      if (this.#ending.signal.aborted) return false;
      const why = error instanceof Error ? error.message : String(error);
      this.#events.record({
        involved: { apiVersion: 'v1', kind: 'Pod', name, namespace, ...(uid === undefined ? {} : { uid }) },
        type: 'Warning',
        reason: 'FailedCreatePodSandBox',
        message: `Failed to create pod sandbox: ${why}`,
      });
      return false;
    }
  }

  async #remove(key: string, pod: RunningPod): Promise<void> {
    await this.#node.removePod(pod.sandboxId);
    this.#running.delete(key);
  }

  #pause(): Promise<unknown> {
    return sleep(RETRY_MS, undefined, { signal: this.#ending.signal }).catch(() => undefined);
  }
}

function runningStatus(ip: string): object {
  const main = { name: 'main', ready: true, restartCount: 0, state: { running: {} } };
  const conditions = ['ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' }));
  return { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }], containerStatuses: [main], conditions } };
}
