import { type BlockCounts, POD_CIDRS_CONFIG_MAP } from '../../../crd/pod-cidr-record.ts';
import { decodeNode, type NodeEntry } from '../../../ipamd/cache/node-entry.ts';
import { type CidrBlocks, numberBlocks } from '../../../ipamd/config/cidr-blocks.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { keepPodCidrs } from '../../../ipamd/pod-cidrs/keep-pod-cidrs.ts';
import { SecondAllocator } from '../../../ipamd/pod-cidrs/second-allocator.ts';
import { openInformer } from '../../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import { CONFIG_MAPS, NODES } from '../../../kube/resource-types.ts';
import { ProblemRegistry } from '../../../observability/problem-registry.ts';
import type { PodRoutes } from '../../../pod-routes/route-cache.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { type InProcessApi, startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** How a cluster is to be. */
type CidrSceneOptions = {
  readonly clusterCidrs?: readonly string[];
  readonly serviceCidr?: string;
  readonly maskSize?: number;
  readonly holdMs?: number;
  readonly routes?: () => PodRoutes | undefined;
  readonly vpcCidrs?: () => readonly string[];
  readonly isLight?: boolean;
  readonly latencyMs?: number;
  /** Drawn for each write: how late it lands, after its caller was told that the time is over. Undefined: in time. */
  readonly lateMs?: (leader: number, name: string) => number | undefined;
};

const TIMEOUT_MS = 5_000;

/** One ipamd, as far as podCIDRs are concerned. */
export type CidrLeader = {
  readonly allocator: SecondAllocator;
  readonly ended: Promise<void>;
  /** Ends the term, as a lost lease does: nothing of it is awaited. */
  stop(): void;
};

/** An API server and any number of leaders of podCIDRs, on a virtual clock. */
export class CidrScene {
  readonly clock = new VirtualClock();
  readonly server: InProcessApi;
  /** Of everybody else: people, kubelets. */
  readonly kube: KubeClient;
  readonly blocks: CidrBlocks;
  readonly events: string[] = [];
  counts: Partial<BlockCounts> | undefined;
  #problems: Pick<ProblemRegistry, 'samples'> = new ProblemRegistry();
  readonly #options: CidrSceneOptions;
  #serial = 0;

  constructor(options: CidrSceneOptions = {}) {
    const { isLight = false, latencyMs = 4 } = options;
    this.#options = options;
    this.server = startInProcessApi({ clock: this.clock, latencyMs, isLight, requestTimeoutMs: 5_000 });
    this.kube = this.server.client({ userAgent: 'people' });
    const { clusterCidrs = ['10.4.0.0/20'], serviceCidr = '10.4.12.0/22', maskSize = 24 } = options;
    this.blocks = numberBlocks({ clusterCidrs, serviceCidr, maskSize });
  }

  /** Starts a leader with caches of its own. */
  lead(): CidrLeader {
    const { clock, server, blocks } = this;
    const { holdMs = 600_000, routes, vpcCidrs = () => [] } = this.#options;
    this.#serial += 1;
    const random = seededRandom(this.#serial);
    const client = this.#withLateWrites(server.client({ userAgent: `ipamd-${this.#serial}` }), this.#serial);
    const nodes = openInformer<NodeEntry>({
      client,
      type: NODES,
      decode: decodeNode,
      clock,
      log: silentLogger,
      random,
    });
    const ending = new AbortController();
    const allocator = new SecondAllocator(nodes, clock);
    const metrics = createIpamdMetrics(clock, { release: 'test' });
    metrics.podCidrBlocks.replace = (samples) => {
      this.counts = Object.fromEntries([...samples].map(([{ state }, count]) => [state, count]));
    };
    this.#problems = metrics.problems;
    const deps = {
      kube: client,
      nodes,
      blocks,
      secondAllocator: allocator,
      ...(routes === undefined ? {} : { routes }),
      vpcCidrs,
      config: { namespace: 'kube-system', configMap: 'tke-eni-ipamd', podCidrHoldMs: holdMs },
      clock,
      log: silentLogger,
      random,
      events: {
        record: ({
          involved,
          reason,
          message,
        }: {
          involved: { kind: string; name: string };
          reason: string;
          message: string;
        }) => void this.events.push(`${reason} ${involved.kind}/${involved.name}: ${message}`),
      },
      metrics,
    };
    void nodes.start(ending.signal);
    const work = async (): Promise<void> => {
      await nodes.synced(ending.signal).catch(() => undefined);
      await keepPodCidrs(deps, ending.signal);
    };
    return { allocator, ended: work(), stop: () => ending.abort(new Error('the term is over')) };
  }

  get problems(): readonly { readonly kind: string; readonly name: string }[] {
    return this.#problems.samples().map(({ kind, name }) => ({ kind, name }));
  }

  #withLateWrites(client: KubeClient, leader: number): KubeClient {
    const { lateMs } = this.#options;
    if (lateMs === undefined) return client;
    const { clock } = this;
    type Write = (signal?: AbortSignal) => Promise<KubeObject>;
    const lately = async (name: string, write: Write, signal?: AbortSignal): Promise<KubeObject> => {
      const ms = lateMs(leader, name);
      if (ms === undefined) return await write(signal);
      // Its caller and its leader may be long gone.
      const land = async (): Promise<void> => {
        await clock.sleep(ms);
        await write().catch(() => undefined);
      };
      runInBackground('a late write', land());
      await clock.sleep(TIMEOUT_MS, signal);
      throw new KubeError({ code: 'TIMEOUT', request: `a write of ${name}`, text: 'no answer in time' });
    };
    return {
      ...client,
      patch: (type, ref, patch, signal) => lately(ref.name, (by) => client.patch(type, ref, patch, by), signal),
      update: (type, object, signal) => lately(object.metadata.name, (by) => client.update(type, object, by), signal),
    };
  }

  /** Registers a Node as a kubelet does. */
  async join(name: string, spec: object = { providerID: `qcloud:///100003/ins-${name}` }): Promise<void> {
    await this.clock.run(this.createNode(name, spec));
  }

  /** The same, for several at once: the clock does not go on by itself. */
  async createNode(name: string, spec: object = { providerID: `qcloud:///100003/ins-${name}` }): Promise<void> {
    await this.kube.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec });
  }

  /** Deletes a Node. */
  async leave(name: string): Promise<void> {
    await this.clock.run(this.kube.delete(NODES, { name }));
  }

  /** Writes a podCIDR as another allocator does: without reading it first. Answers whether it was accepted. */
  async give(name: string, cidr: string): Promise<boolean> {
    const body = { spec: { podCIDR: cidr, podCIDRs: [cidr] } };
    const answer = this.kube.patch(NODES, { name }, { kind: 'strategic', body });
    return await this.clock.run(answer.then(() => true).catch(() => false));
  }

  /** The podCIDR of each Node, '' of those that have none. */
  cidrs(): ReadonlyMap<string, string> {
    const nodes = this.server.objects('nodes') as readonly KubeObject[];
    return new Map(nodes.map((node) => [node.metadata.name, decodeNode(node).podCidrs[0] ?? '']));
  }

  /** The data of the record, {} while there is none. */
  record(): Readonly<Record<string, string>> {
    const maps = this.server.objects('configmaps') as readonly KubeObject[];
    const map = maps.find(({ metadata }) => metadata.name === POD_CIDRS_CONFIG_MAP);
    return (map?.['data'] ?? {}) as Readonly<Record<string, string>>;
  }

  /** Changes the record as a person does. */
  async edit(data: Readonly<Record<string, string>> | undefined): Promise<void> {
    const ref = { namespace: 'kube-system', name: POD_CIDRS_CONFIG_MAP };
    const work: Promise<unknown> =
      data === undefined
        ? this.kube.delete(CONFIG_MAPS, ref)
        : this.kube.patch(CONFIG_MAPS, ref, { kind: 'merge', body: { data } });
    await this.clock.run(work);
  }
}
