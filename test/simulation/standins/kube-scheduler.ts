import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { POD_BINDINGS } from '../../../kube/resource-types.ts';
import { inTime } from '../../../runtime/clock-timers.ts';
import { recordOf, recordsOf, textOf, textsOf } from '../../../runtime/json.ts';
import type { InProcessApi } from '../../../sim/kube-api/in-process.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { Timeline } from '../clock.ts';
import type { ExtenderNetwork } from '../programs/extender.ts';
import { between, type Draw } from '../streams.ts';

/** What kube-scheduler works with. */
type KubeSchedulerDeps = {
  readonly api: InProcessApi;
  readonly kube: KubeClient;
  readonly time: Timeline;
  readonly draw: Draw;
  readonly note: (what: string) => void;
  readonly network: ExtenderNetwork;
  /** Addresses to which the Service of the extender leads. */
  readonly addresses: readonly string[];
  /** Whether Pods are scheduled without the extender while that does not answer; default: as the configuration says. */
  readonly isIgnorable?: boolean;
};

/** How the network treats a request to the extender. */
export type ExtenderFault = {
  readonly verb: 'filter' | 'prioritize' | 'bind';
  /** The request never arrives, its answer never does, or it arrives so many milliseconds later. */
  readonly what: 'lose-request' | 'lose-answer' | { readonly lateMs: number };
};

const CONFIGURATION = new URL('../../../conf/kubernetes/scheduler/kube-scheduler-configuration.yaml', import.meta.url);
/** How long one way to the extender takes, milliseconds. */
const WAY_MS = [1, 3] as const;
/** The first and the longest back-off of a Pod that could not be placed. */
const BACKOFF_MS = [1_000, 10_000] as const;

/**
 * kube-scheduler: one Pod after the other, of those that are bound to no node. It asks the extender which nodes a Pod fits and which is
 * best, and lets it bind the Pod, beside the next one. What goes wrong is tried again after a back-off. Nodes have room for all that it counts itself.
 */
export class KubeScheduler {
  /** What befalls the next requests, the first one first. */
  readonly faults: ExtenderFault[] = [];
  readonly #deps: KubeSchedulerDeps;
  readonly #config: { readonly timeoutMs: number; readonly isIgnorable: boolean; readonly managed: readonly string[] };
  /** Uids of Pods that are being bound. */
  readonly #assumed = new Set<string>();
  /** Of Pods that could not be placed, by uid: how often, and until when they rest. */
  readonly #resting = new Map<string, { readonly failures: number; readonly untilMs: number }>();
  #wake = Promise.withResolvers<void>();

  constructor(deps: KubeSchedulerDeps) {
    this.#deps = deps;
    const [extender] = recordsOf(recordOf(parse(readFileSync(CONFIGURATION, 'utf8')))['extenders']);
    const { httpTimeout, ignorable, managedResources } = recordOf(extender);
    this.#config = {
      timeoutMs: Number.parseInt(textOf(httpTimeout), 10) * 1_000,
      isIgnorable: deps.isIgnorable ?? ignorable === true,
      managed: recordsOf(managedResources).map(({ name }) => textOf(name)),
    };
    deps.api.api.store.subscribe('/pods', () => this.#wake.resolve());
  }

  /** Schedules until the world ends. */
  async run(): Promise<never> {
    const { time } = this.#deps;
    for (;;) {
      this.#wake = Promise.withResolvers();
      const [pod] = this.#waiting().filter(({ metadata }) => this.#restsUntil(metadata.uid) <= time.nowMs);
      if (pod !== undefined) await this.#schedule(pod);
      else {
        const soonest = Math.min(...this.#waiting().map(({ metadata }) => this.#restsUntil(metadata.uid)));
        await Promise.race([this.#wake.promise, time.sleep(soonest - time.nowMs)]);
      }
    }
  }

  /** Pods that are to be bound. */
  #waiting(): readonly KubeObject[] {
    return this.#deps.api
      .objects('pods')
      .filter(
        ({ metadata, spec }) =>
          recordOf(spec)['nodeName'] === undefined &&
          metadata.deletionTimestamp === undefined &&
          !this.#assumed.has(metadata.uid ?? ''),
      );
  }

  #restsUntil(uid: string | undefined): number {
    return this.#resting.get(uid ?? '')?.untilMs ?? 0;
  }

  async #schedule(pod: KubeObject): Promise<void> {
    const { uid = '', name } = pod.metadata;
    const nodes = this.#deps.api.objects('nodes').map(({ metadata }) => metadata.name);
    const isOurs = this.#isManaged(pod);
    const fitting = isOurs ? await this.#filter(pod, nodes) : nodes;
    if (fitting === undefined || fitting.length === 0) return this.#rest(uid);
    const node = isOurs ? await this.#best(pod, fitting) : this.#any(fitting);
    this.#assumed.add(uid);
    this.#deps.note(`${name} to ${node}`);
    void this.#bind(pod, node, isOurs).then((isBound) => {
      this.#assumed.delete(uid);
      if (isBound) this.#resting.delete(uid);
      else this.#rest(uid);
      this.#wake.resolve();
    });
  }

  #rest(uid: string): void {
    const failures = (this.#resting.get(uid)?.failures ?? 0) + 1;
    const [first, most] = BACKOFF_MS;
    this.#resting.set(uid, { failures, untilMs: this.#deps.time.nowMs + Math.min(most, first * 2 ** (failures - 1)) });
  }

  /** Nodes that a Pod fits; undefined when that is not known. */
  async #filter(pod: KubeObject, nodes: readonly string[]): Promise<readonly string[] | undefined> {
    const answer = await this.#ask('filter', { Pod: pod, Nodes: null, NodeNames: nodes });
    if (answer === undefined) return this.#config.isIgnorable ? nodes : undefined;
    return textOf(recordOf(answer)['Error']) === '' ? textsOf(recordOf(answer)['NodeNames']) : undefined;
  }

  /** The node with the highest score, and any of them where the extender does not say. */
  async #best(pod: KubeObject, nodes: readonly string[]): Promise<string> {
    const scores = recordsOf(await this.#ask('prioritize', { Pod: pod, Nodes: null, NodeNames: nodes }));
    const highest = Math.max(...scores.map(({ Score }) => Number(Score)));
    const best = scores.flatMap(({ Host, Score }) => (Number(Score) === highest ? [textOf(Host)] : []));
    return this.#any(best.length === 0 ? nodes : best);
  }

  #any(nodes: readonly string[]): string {
    return nodes[Math.floor(this.#deps.draw() * nodes.length)] ?? '';
  }

  /** Returns whether a Pod is bound; when that is not known, it is not. */
  async #bind({ metadata }: KubeObject, node: string, isOurs: boolean): Promise<boolean> {
    const { namespace = '', name, uid = '' } = metadata;
    if (isOurs) {
      const answer = await this.#ask('bind', { PodName: name, PodNamespace: namespace, PodUID: uid, Node: node });
      if (answer !== undefined || !this.#config.isIgnorable) return recordOf(answer)['Error'] === '';
    }
    const target = { apiVersion: 'v1', kind: 'Node', name: node };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { namespace, name, uid }, target };
    return await this.#deps.kube.create(POD_BINDINGS, binding).then(
      () => true,
      () => false,
    );
  }

  /** The answer of the extender; undefined when there is none. */
  async #ask(verb: ExtenderFault['verb'], args: object): Promise<unknown> {
    const { time, draw, addresses, network, note } = this.#deps;
    const address = addresses[Math.floor(draw() * addresses.length)] ?? '';
    const at = this.faults.findIndex((one) => one.verb === verb);
    const what = at < 0 ? undefined : this.faults.splice(at, 1)[0]?.what;
    const post = (signal: AbortSignal) => network.post(address, verb, JSON.stringify(args), 'kube-scheduler', signal);
    try {
      return await inTime(time, this.#config.timeoutMs, async (signal) => {
        await time.sleep(between(draw, WAY_MS), signal);
        if (what === 'lose-request') throw new Error('the request was lost');
        if (typeof what === 'object') await time.sleep(what.lateMs, signal);
        const { status, text } = await post(what === 'lose-answer' ? new AbortController().signal : signal);
        await time.sleep(between(draw, WAY_MS), signal);
        if (what === 'lose-answer') throw new Error('the answer was lost');
        if (status !== 200) throw new Error(`${status} ${text}`);
        return JSON.parse(text);
      });
    } catch (error) {
      note(`${verb} at ${address} fails: ${String(error)}`);
      return undefined;
    }
  }

  #isManaged({ spec }: KubeObject): boolean {
    return recordsOf(recordOf(spec)['containers']).some(({ resources }) => {
      const { limits, requests } = recordOf(resources);
      return Object.keys({ ...recordOf(limits), ...recordOf(requests) }).some((one) =>
        this.#config.managed.includes(one),
      );
    });
  }
}
