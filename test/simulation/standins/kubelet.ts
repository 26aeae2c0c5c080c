import type { PodIdentity } from '../../../agent/pool/lease-static.ts';
import { POD_ANNOTATION } from '../../../crd/names.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { recordOf, textOf } from '../../../runtime/json.ts';
import type { InProcessApi } from '../../../sim/kube-api/in-process.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { Timeline } from '../clock.ts';
import { removePod } from '../remove-pod.ts';
import { between, type Draw } from '../streams.ts';

/** A sandbox: from when its Pod has an address until the runtime has ended it. */
export type Sandbox = {
  readonly pod: string;
  readonly uid: string;
  readonly ips: readonly string[];
  /** Name of its network namespace; absent where there is no kernel. */
  readonly netns?: string;
};

/** Who gives addresses to the Pods of a node. */
export type AddressGiver = {
  /** A Pod wants an address, of the pool or the one that is kept for its name; `attached` tells of it. */
  add(pod: PodIdentity, isKept: boolean): void;
  /** A Pod ends; a promise resolves when its sandbox is gone. */
  remove(uid: string): Promise<void> | void;
};

/** What a kubelet works with. */
type KubeletDeps = {
  readonly node: string;
  readonly agent: AddressGiver;
  readonly api: InProcessApi;
  readonly kube: KubeClient;
  readonly time: Timeline;
  readonly draw: Draw;
  readonly note: (what: string) => void;
};

/** How long kubelet and runtime take before an ADD, and before a DEL, milliseconds. */
const START_MS = [50, 500] as const;
const STOP_MS = [200, 2_000] as const;
const RETRY_MS = 1_000;

/**
 * The kubelet of a node, and its runtime. It sees the Pods that the API server has, wants an address for each that is bound to
 * its node, writes the status of Pods, and removes the object of a Pod that is being deleted once its sandbox has ended.
 */
export class Kubelet {
  readonly sandboxes = new Map<string, Sandbox>();
  readonly #deps: KubeletDeps;
  readonly #started = new Set<string>();
  readonly #ending = new Set<string>();
  #isOff = false;
  #isDeaf = false;

  constructor(deps: KubeletDeps) {
    this.#deps = deps;
    deps.api.api.store.subscribe('/pods', ({ type, object }) => {
      if (recordOf(object['spec'])['nodeName'] !== deps.node || this.#isOff || this.#isDeaf) return;
      if (type === 'DELETED' || object.metadata.deletionTimestamp !== undefined) this.#end(object);
      else this.#start(object);
    });
  }

  /** The machine is off: nothing runs on it any more, and nobody on it does anything. */
  turnOff(): void {
    this.#isOff = true;
    this.sandboxes.clear();
  }

  /** The machine boots: every Pod that is not ending gets another sandbox. */
  reboot(): void {
    this.sandboxes.clear();
    this.#started.clear();
    this.relist();
  }

  /** It hears of no Pod any more, until it looks at all of them again. */
  deafen(): void {
    this.#isDeaf = true;
  }

  /** Looks at all Pods again: the API server went back to an older state and told nobody, or this kubelet was deaf. */
  relist(): void {
    this.#isDeaf = false;
    const pods = this.#pods().filter((pod) => recordOf(pod['spec'])['nodeName'] === this.#deps.node);
    for (const pod of pods) if (pod.metadata.deletionTimestamp === undefined) this.#start(pod);
    for (const pod of pods) if (pod.metadata.deletionTimestamp !== undefined) this.#end(pod);
    for (const { uid, pod: name, ips } of this.sandboxes.values()) {
      if (pods.some(({ metadata }) => metadata.uid === uid)) void this.#report(name, ips);
      else this.#end({ apiVersion: 'v1', kind: 'Pod', metadata: { uid, name } });
    }
    // Nor is one served any longer that has no address yet.
    for (const uid of this.#started)
      if (!this.sandboxes.has(uid) && !pods.some(({ metadata }) => metadata.uid === uid))
        this.#end({ apiVersion: 'v1', kind: 'Pod', metadata: { uid, name: uid } });
  }

  /** The agent gave addresses to a Pod. */
  attached(uid: string, ips: readonly string[], netns?: string): void {
    const pod = textOf(this.#pods().find(({ metadata }) => metadata.uid === uid)?.metadata.name);
    this.sandboxes.set(uid, { uid, pod, ips, ...(netns !== undefined && { netns }) });
    this.#deps.note(`${pod} has ${ips.join(' ')}`);
    void this.#report(pod, ips);
  }

  #pods(): readonly KubeObject[] {
    return this.#deps.api.objects('pods');
  }

  #start(pod: KubeObject): void {
    const { time, draw, agent } = this.#deps;
    const uid = pod.metadata.uid ?? '';
    if (this.#started.has(uid)) return;
    this.#started.add(uid);
    const identity = { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name, uid };
    const { [POD_ANNOTATION.deletePolicy]: policy = 'Immediate' } = pod.metadata.annotations ?? {};
    const isKept = policy !== 'Immediate';
    void time.sleep(between(draw, START_MS)).then(() => {
      if (this.#ending.has(uid) || this.#isOff) return;
      agent.add(identity, isKept);
    });
  }

  #end(pod: KubeObject): void {
    const { time, draw, agent, note } = this.#deps;
    const { uid = '', name } = pod.metadata;
    if (this.#ending.has(uid)) return;
    this.#ending.add(uid);
    void time.sleep(between(draw, STOP_MS)).then(async () => {
      if (this.#isOff) return;
      this.sandboxes.delete(uid);
      const gone = agent.remove(uid);
      if (gone !== undefined) await gone;
      note(`${name} ended`);
      removePod(this.#deps.api, pod);
      // Were it there again, as after a restore, it would be started again.
      this.#started.delete(uid);
      this.#ending.delete(uid);
    });
  }

  async #report(name: string, ips: readonly string[]): Promise<void> {
    const { kube, time } = this.#deps;
    const status = { phase: 'Running', podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) };
    const patch = { kind: 'merge', body: { status }, subresource: 'status' } as const;
    for (let isWritten = false; !isWritten && !this.#isOff; ) {
      isWritten = await kube.patch(PODS, { namespace: 'default', name }, patch).then(
        () => true,
        () => !this.#pods().some(({ metadata }) => metadata.name === name),
      );
      if (!isWritten) await time.sleep(RETRY_MS);
    }
  }
}
