import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { type ConfigMapEntry, decodeConfigMap } from '../../../ipamd/cache/config-map-entry.ts';
import { decodeNec, type NecEntry } from '../../../ipamd/cache/decode-nec.ts';
import { decodeNode, type NodeEntry } from '../../../ipamd/cache/node-entry.ts';
import { createPodDecoder, POD_INDEXES, type PodFacts } from '../../../ipamd/cache/pod-facts.ts';
import type { NodeFactsAnswer } from '../../../ipamd/calls/node-deps.ts';
import type { NodeFactValues } from '../../../ipamd/decide/node-view.ts';
import { AddressLookup } from '../../../ipamd/nodes/address-lookup.ts';
import { openInstanceCache } from '../../../ipamd/nodes/instance-cache.ts';
import { createNodeController } from '../../../ipamd/nodes/node-controller.ts';
import { createNodeFacts } from '../../../ipamd/nodes/node-facts.ts';
import type { NodeSettingsFlags } from '../../../ipamd/nodes/node-flags.ts';
import { Renewals } from '../../../ipamd/nodes/renewals.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { openSubnets } from '../../../ipamd/subnets/open-subnets.ts';
import { runController } from '../../../kube/controller.ts';
import { type Informer, type InformerOptions, openInformer } from '../../../kube/informer.ts';
import type { KubeClient, KubeObject, ResourceType } from '../../../kube/kube-client.ts';
import { ReleaseBrake } from '../../../kube/release-brake.ts';
import { CONFIG_MAPS, NODE_ENI_CONFIGS, NODES, PODS } from '../../../kube/resource-types.ts';
import { WorkQueue } from '../../../kube/work-queue.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createInProcessKube } from '../../../sim/kube-api/in-process.ts';
import { installKinds } from '../../../sim/kube-api/install-kinds.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { STANDING } from '../support/standing.ts';

/** Subnets of the scene: two in the nodes' zone, one elsewhere. */
const SUBNETS = [
  { subnetId: 'subnet-large000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/16' },
  { subnetId: 'subnet-other000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/24' },
  { subnetId: 'subnet-zone4000', zone: 'ap-guangzhou-4', cidr: '10.2.0.0/24' },
] as const;

/** Where the ConfigMap with the subnets is. */
export const CONFIG_MAP = { namespace: 'kube-system', name: 'tke-eni-ipamd' } as const;

/** The flags as they are by default. */
export const FLAGS: NodeSettingsFlags = {
  ipMinWarmTarget: 5,
  ipMaxWarmTarget: 7,
  eniMinWarmTarget: 1,
  eniMaxWarmTarget: 1,
  enableDirectEni: false,
  enableStaticIp: 'auto',
  enableSecurityGroups: false,
  securityGroups: [],
  onlyNominatedEniSubnets: [],
  enableNodeCondition: false,
  enableNodeTaint: false,
  startupTaints: [],
  nodeReleaseGraceMs: 300_000,
  nodeReleasePercent: 10,
  allocateNodeCidrs: false,
  defaultNetwork: 'tke-route-eni',
};

const STOPPED_GRACE_MS = 600_000;

/** What was told to people, as `reason Kind/name: message`. */
type ToldEvents = string[];

/** Nodes and subnets of ipamd, whole, on a virtual clock, an API server and a cloud of this process; nobody attaches ENIs. */
export class NodesScene {
  readonly clock = new VirtualClock();
  readonly host = new CloudHost({ vpcId: 'vpc-0000test', subnets: SUBNETS }, this.clock);
  readonly kube: KubeClient = createInProcessKube(this.clock);
  readonly events: ToldEvents = [];
  readonly woken: string[] = [];
  readonly ending = new AbortController();
  readonly nodes: Informer<NodeEntry>;
  readonly necs: Informer<NecEntry>;
  readonly pods: Informer<PodFacts>;
  readonly configMaps: Informer<ConfigMapEntry>;
  readonly metrics = createIpamdMetrics(this.clock, { release: 'test' });
  readonly instances;
  readonly subnets;
  readonly facts;
  readonly controller;
  readonly queue: WorkQueue;

  constructor(flags: Partial<NodeSettingsFlags> = {}) {
    const { clock, kube } = this;
    const random = seededRandom(7);
    const cloud = createTencentCloud({ api: createInProcessApi(this.host), clock, random });
    const log = silentLogger;
    const events = {
      record: ({
        involved,
        reason,
        message,
      }: {
        involved: { kind: string; name: string };
        reason: string;
        message: string;
      }) => void this.events.push(`${reason} ${involved.kind}/${involved.name}: ${message}`),
    };
    this.nodes = this.#inform<NodeEntry>(NODES, { decode: decodeNode });
    this.necs = this.#inform<NecEntry>(NODE_ENI_CONFIGS, { decode: decodeNec });
    this.pods = this.#inform<PodFacts>(PODS, { decode: createPodDecoder(), indexes: POD_INDEXES });
    this.configMaps = this.#inform<ConfigMapEntry>(CONFIG_MAPS, { decode: decodeConfigMap });
    const { namespace, name: configMap } = CONFIG_MAP;
    const config = { ...FLAGS, ...flags, namespace, configMap, stoppedInstanceGraceMs: STOPPED_GRACE_MS };
    const { metrics } = this;
    this.instances = openInstanceCache({ cloud, clock, log, metrics, config });
    const vpcIds = () => [];
    const { configMaps, nodes, necs, pods, instances } = this;
    this.subnets = openSubnets({ kube, cloud, config, configMaps, vpcIds, clock, log, events, metrics });
    const vpcId = (): string | undefined => this.subnets.config()?.vpcId;
    const lookup = new AddressLookup(cloud.instances, log);
    this.facts = createNodeFacts({ nodes, pods, instances, lookup, subnets: this.subnets, clock, config });
    const own = {
      kube,
      nodes,
      necs,
      instances,
      facts: this.facts,
      lookup,
      vpcId,
      subnets: this.subnets,
      definitions: STANDING,
      renewals: new Renewals(),
      brake: new ReleaseBrake(clock, config.nodeReleasePercent),
      config,
      clock,
      log,
      events,
      metrics,
      enqueueNode: (name: string) => void this.woken.push(name),
    };
    this.controller = createNodeController(own);
    this.queue = new WorkQueue({ clock, random });
  }

  /** Starts everything; two cores each in the large subnet: `ins-node0001` and `ins-node0002`. */
  async start(): Promise<this> {
    for (const instanceId of ['ins-node0001', 'ins-node0002'])
      this.host.model.state.addInstance({ instanceId, cores: 2, subnetId: 'subnet-large000' });
    await installKinds(this.kube);
    // A cluster has a Node that stays: without any, no release is believed.
    const labels = { 'node.kubernetes.io/instance-type': 'eklet' };
    await this.kube.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'always', labels } });
    await this.configure({
      TKE_ENI_IPAMD_SUBNET_ID: 'subnet-large000:subnet-zone4000',
      TKE_ENI_IPAMD_VPC_ID: 'vpc-0000test',
    });
    const { signal } = this.ending;
    for (const informer of [this.nodes, this.necs, this.pods, this.configMaps]) void informer.start(signal);
    await this.clock.advance(1_000);
    for (const informer of [this.nodes, this.necs]) informer.subscribe(({ key }) => this.queue.add(key));
    this.instances.subscribe(() => this.#lookAtAll());
    void this.subnets.run(signal);
    void this.instances.run(() => this.#instanceIds(), signal);
    const reconcile = (name: string, by: AbortSignal) => this.controller.reconcile(name, by);
    const { queue, clock } = this;
    void runController({ name: 'nodes', queue, workers: 4, reconcile, clock, log: silentLogger }, signal);
    await this.clock.advance(1_000);
    return this;
  }

  /** Ends everything. */
  async stop(): Promise<void> {
    this.ending.abort(new Error('the scene is over'));
    this.queue.close();
    await this.clock.advance(1_000);
  }

  /** Writes the data of the ConfigMap. */
  async configure(data: Readonly<Record<string, string>>): Promise<void> {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: CONFIG_MAP, data };
    const before = await this.kube.get(CONFIG_MAPS, CONFIG_MAP);
    await (before === undefined ? this.kube.create(CONFIG_MAPS, object) : this.kube.update(CONFIG_MAPS, object));
  }

  /** Registers a Node, and waits until it is dealt with. */
  async join(
    name = 'node-1',
    change: { readonly metadata?: object; readonly spec?: object } = {},
    addresses: readonly object[] = [],
  ): Promise<void> {
    await this.kube.create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, ...change.metadata },
      spec: { providerID: 'qcloud:///100003/ins-node0001', ...change.spec },
      ...(addresses.length === 0 ? {} : { status: { addresses } }),
    });
    await this.clock.advance(2_000);
  }

  /** Changes annotations; null takes one off. */
  async annotate(
    type: ResourceType,
    name: string,
    annotations: Readonly<Record<string, string | null>>,
  ): Promise<void> {
    await this.kube.patch(type, { name }, { kind: 'merge', body: { metadata: { annotations } } });
    await this.clock.advance(2_000);
  }

  /** Changes a Node, or its status, and lets ipamd act on it. */
  async patchNode(name: string, body: object, subresource?: 'status'): Promise<void> {
    await this.kube.patch(
      NODES,
      { name },
      { kind: 'merge', body, ...(subresource === undefined ? {} : { subresource }) },
    );
    await this.clock.advance(2_000);
  }

  /** Changes parts of a NodeENIConfig, as the agent, ipamd and people do. */
  async patchNec(name: string, body: object): Promise<void> {
    await this.kube.patch(NODE_ENI_CONFIGS, { name }, { kind: 'merge', body });
    await this.clock.advance(2_000);
  }

  /** Reads a NodeENIConfig. */
  async nec(name = 'node-1'): Promise<Nec | undefined> {
    // Checked against its schema by the server.
    return (await this.kube.get(NODE_ENI_CONFIGS, { name })) as Nec | undefined;
  }

  /** Reads the taints of a Node. */
  async taintsOf(name = 'node-1'): Promise<unknown> {
    const spec = (await this.kube.get(NODES, { name }))?.['spec'];
    return (spec as { taints?: unknown } | undefined)?.taints;
  }

  /** What is known of a node for its supply. @throws Error when it is not known */
  factsOf(name = 'node-1'): NodeFactValues {
    const answer = this.answerOf(name);
    if (answer.kind !== 'known') throw new Error(`unknown: ${answer.problem.message}`);
    return answer.values;
  }

  /** What is answered of a node for its supply. @throws Error when it has no NodeENIConfig */
  answerOf(name = 'node-1'): NodeFactsAnswer {
    const entry = this.necs.get(name);
    if (entry === undefined) throw new Error(`no NodeENIConfig ${name}`);
    return this.facts.viewOf(name, entry);
  }

  #inform<T>(type: ResourceType, own: Pick<InformerOptions<T>, 'decode' | 'indexes'>): Informer<T> {
    const { clock } = this;
    return openInformer<T>({ client: this.kube, type, ...own, clock, log: silentLogger, random: seededRandom(3) });
  }

  #instanceIds(): readonly string[] {
    const ofNecs = [...this.necs.values()].map(({ decoded }) => decoded?.status?.instanceID);
    const ofNodes = [...this.nodes.values()].map(({ instanceId }) => instanceId);
    return [...ofNecs, ...ofNodes].filter((id) => id !== undefined);
  }

  #lookAtAll(): void {
    for (const name of [...this.nodes.keys(), ...this.necs.keys()]) this.queue.add(name);
  }
}

/** A NodeENIConfig as the server has it. */
type Nec = KubeObject & { readonly spec: NodeEniConfigSpec; readonly status: NodeEniConfigStatus };
