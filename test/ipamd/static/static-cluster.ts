import { API_GROUP, POD_ANNOTATION } from '../../../crd/names.ts';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import type { RunningIpamd } from '../../../ipamd/ipamd.ts';
import { NODE_ENI_CONFIGS } from '../../../ipamd/node-lifecycle/node-eni-configs.ts';
import { CLAIMS, VIPS } from '../../../ipamd/static/write-claim.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import type { KubeObject, OwnerReference } from '../../../kube/kube-client.ts';
import { NODES, PODS } from '../../../kube/resource-types.ts';
import { isRecord } from '../../../runtime/decode.ts';
import { ADMIN } from '../../../sim/kube-api/auth/tokens.ts';
import { dispatch } from '../../../sim/kube-api/verbs/dispatch.ts';
import { type ShellScene, shellScene } from '../shell/shell-scene.ts';

/** Two zones, each with a subnet for Pods. */
const CLOUD = {
  vpcId: 'vpc-00000001',
  subnets: [
    { subnetId: 'subnet-pods0001', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/20' },
    { subnetId: 'subnet-node0001', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
    { subnetId: 'subnet-pods0002', zone: 'ap-guangzhou-4', cidr: '10.2.0.0/20' },
    { subnetId: 'subnet-node0002', zone: 'ap-guangzhou-4', cidr: '10.0.1.0/24' },
  ],
} as const;

/** A sandbox: what really has an address on a node, whatever the API server says. */
type Sandbox = { readonly pod: string; readonly uid: string; readonly node: string; readonly ip: string };

/** On the mirror of a Pod from a kubelet's manifest: the uid of that Pod. */
export const MIRROR = 'kubernetes.io/config.mirror';

const STEP_MS = 250;
const LIMIT_MS = 900_000;

/**
 * A cluster in this process whose agents are as short as they can be: a sandbox gets the address that is marked with its
 * uid, and a marked address without a sandbox, whose mark names none that wants one here, is offered back.
 */
export class StaticCluster {
  readonly scene: ShellScene;
  readonly sandboxes = new Map<string, Sandbox>();
  /** Pods that a kubelet was told of, by uid; it starts and stops them. */
  readonly #started = new Map<string, { readonly pod: string; readonly node: string }>();
  readonly deadNodes = new Set<string>();
  /** The highest epoch of the supply that was in force, by node. */
  readonly #epochs = new Map<string, number>();
  /** Of the instances of nodes: one core has a single ENI with room for five addresses. */
  readonly #cores: number;
  #ipamd: RunningIpamd | undefined;
  #flags: readonly string[];
  #uids = 0;
  #lives = 0;
  #name = '';

  private constructor(scene: ShellScene, flags: readonly string[], cores: number) {
    this.scene = scene;
    this.#cores = cores;
    this.#flags = ['--enable-static-ip=true', '--leader-elect=false', '--shutdown-grace=0s', ...flags];
  }

  static async make(
    nodes: Readonly<Record<string, 3 | 4>>,
    flags: readonly string[] = [],
    cores = 8,
  ): Promise<StaticCluster> {
    const scene = await shellScene(CLOUD);
    const cluster = new StaticCluster(scene, flags, cores);
    const map = await scene.clock.run(
      scene.kube.get(
        { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', isNamespaced: true },
        { namespace: 'kube-system', name: 'tke-eni-ipamd' },
      ),
    );
    if (map === undefined) throw new Error('there is no ConfigMap');
    const data = {
      ...(isRecord(map['data']) ? map['data'] : {}),
      TKE_ENI_IPAMD_SUBNET_ID: 'subnet-pods0001:subnet-pods0002',
    };
    await scene.clock.run(
      scene.kube.update(
        { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', isNamespaced: true },
        { ...map, data },
      ),
    );
    for (const [name, zone] of Object.entries(nodes)) await cluster.#join(name, zone);
    return cluster;
  }

  async #join(name: string, zone: 3 | 4): Promise<void> {
    const instanceId = `ins-static${name}`;
    const subnetId = zone === 3 ? 'subnet-node0001' : 'subnet-node0002';
    this.scene.host.model.state.addInstance({ instanceId, cores: this.#cores, subnetId });
    await this.run(
      this.scene.kube.create(NODES, {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name },
        spec: { providerID: `qcloud:///100003/${instanceId}` },
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
      }),
    );
  }

  async run<T>(promise: Promise<T>): Promise<T> {
    return await this.scene.clock.run(promise);
  }

  async startIpamd(...flags: readonly string[]): Promise<void> {
    // Of one length: a fault for a client meets every client whose name has this name as a part.
    this.#name = `ipamd-${String(++this.#lives).padStart(4, '0')}`;
    this.#ipamd = await this.scene.start({ name: this.#name, flags: [...this.#flags, ...flags] });
  }

  /** Nothing of ipamd reaches the API server from this moment on: the beginning of a kill. */
  cutOff(): void {
    this.scene.server.partition(this.#name);
  }

  /** As a kill: nothing of it reaches the API server any more, while its calls of the cloud go on; then a new one starts. */
  async killIpamd(): Promise<void> {
    const old = this.#ipamd;
    const { heal } = this.scene.server.partition(this.#name);
    await this.startIpamd();
    if (old === undefined) return;
    // It ends by itself, without a word to anybody.
    old.close().then(heal, heal);
  }

  async stopIpamd(): Promise<void> {
    if (this.#ipamd !== undefined) await this.run(this.#ipamd.close());
    this.#ipamd = undefined;
  }

  /** A Pod whose address is kept; '' for one that has no node yet. Returns its uid. */
  async createPod(
    name: string,
    node: string,
    annotations: Readonly<Record<string, string>> = {},
    owner?: OwnerReference,
  ): Promise<string> {
    const made = await this.run(
      this.scene.kube.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name,
          namespace: 'default',
          annotations: {
            [POD_ANNOTATION.networks]: 'tke-route-eni',
            [POD_ANNOTATION.deletePolicy]: 'Never',
            ...annotations,
          },
          labels: { app: 'web' },
          ...(owner === undefined ? {} : { ownerReferences: [owner] }),
        },
        spec: { containers: [{ name: 'c', image: 'i' }], ...(node === '' ? {} : { nodeName: node }) },
        status: { phase: 'Pending' },
      }),
    );
    // The kubelet knows a Pod of its own manifest by another uid than that of its mirror.
    const uid = annotations[MIRROR] ?? made.metadata.uid ?? `uid-${++this.#uids}`;
    if (node !== '') this.#started.set(uid, { pod: name, node });
    return uid;
  }

  /** Deletes a Pod; by force its sandbox lives on, for the kubelet has not heard of it. */
  async deletePod(name: string, isForced = false): Promise<void> {
    const { server, clock } = this.scene;
    const resource = server.api.registry.find('', 'v1', 'pods');
    if (resource === undefined) throw new Error('no Pods');
    const target = { resource, namespace: 'default', name, subresource: '' };
    const query = new URLSearchParams('gracePeriodSeconds=0');
    dispatch(server.api, 'delete', { ...target, query, user: ADMIN, userAgent: 'kubelet', contentType: '', body: {} });
    await clock.advance(1);
    if (!isForced) this.stopSandboxes(name);
  }

  /** The kubelet ends what runs under a name. */
  stopSandboxes(name: string): void {
    for (const [uid, { pod }] of this.#started) {
      if (pod !== name) continue;
      this.#started.delete(uid);
      this.sandboxes.delete(uid);
    }
  }

  /** The kubelet ends one sandbox that it should have ended before. */
  stopSandbox(uid: string): void {
    this.#started.delete(uid);
    this.sandboxes.delete(uid);
  }

  /** The node is no more, and nothing on it answers. */
  async deleteNode(node: string): Promise<void> {
    this.deadNodes.add(node);
    await this.run(this.scene.kube.delete(NODES, { name: node }));
  }

  async labelNode(node: string, label: string, value: string): Promise<void> {
    const body = { metadata: { labels: { [label]: value } } };
    await this.run(this.scene.kube.patch(NODES, { name: node }, { kind: 'merge', body }));
  }

  async setReady(node: string, isReady: boolean): Promise<void> {
    await this.run(
      this.scene.kube.patch(
        NODES,
        { name: node },
        {
          kind: 'merge',
          body: { status: { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'Unknown' }] } },
          subresource: 'status',
        },
      ),
    );
    if (isReady) this.deadNodes.delete(node);
    else this.deadNodes.add(node);
  }

  objects(plural: string): readonly KubeObject[] {
    // The store's objects are those of the API.
    return this.scene.server.objects(plural, API_GROUP) as readonly KubeObject[];
  }

  claim(name: string): KubeObject | undefined {
    return this.objects('vpcipclaims').find(({ metadata }) => metadata.name === name);
  }

  vip(ip: string): KubeObject | undefined {
    return this.objects('vpcips').find(({ metadata }) => metadata.name === ip);
  }

  phase(name: string): unknown {
    const status = this.claim(name)?.['status'];
    return isRecord(status) ? status['phase'] : undefined;
  }

  /** The condition Ready of a claim: reason and message. */
  why(name: string): string {
    const status = this.claim(name)?.['status'];
    const conditions = isRecord(status) && Array.isArray(status['conditions']) ? status['conditions'] : [];
    const ready = conditions.find((one: unknown) => isRecord(one) && one['type'] === 'Ready');
    return isRecord(ready) ? `${String(ready['reason'])}: ${String(ready['message'] ?? '')}` : '';
  }

  /** The address of the sandbox of a uid. */
  ipOf(uid: string): string | undefined {
    return this.sandboxes.get(uid)?.ip;
  }

  /** What is not as it must be at any moment: a sandbox whose address the cloud has on another ENI than its node's. */
  broken(): readonly string[] {
    const enis = [...this.scene.host.model.state.enis.values()];
    return [...this.sandboxes.values()].flatMap(({ pod, node, ip }) => {
      if (this.deadNodes.has(node)) return [];
      const eni = enis.find(({ ips }) => ips.has(ip));
      const isThere = eni?.attachment?.instanceId === `ins-static${node}`;
      return isThere ? [] : [`${pod} on node ${node} uses ${ip}, which is on ${eni?.eniId ?? 'no ENI'}`];
    });
  }

  statusOf(node: string): NodeEniConfigStatus | undefined {
    // Checked by the schema of the API server.
    return this.scene.nec(node)?.['status'] as NodeEniConfigStatus | undefined;
  }

  events(): readonly string[] {
    return this.scene.server.objects('events').map((one) => `${String(one['reason'])} ${String(one['message'])}`);
  }

  /** Goes on until it holds. @throws Error when it does not, or when two sandboxes have one address. */
  async until(holds: () => boolean, what = 'it does not come to hold'): Promise<void> {
    const deadlineMs = this.scene.clock.monotonicMs() + LIMIT_MS;
    while (!holds()) {
      if (this.scene.clock.monotonicMs() > deadlineMs) throw new Error(what);
      await this.step();
    }
  }

  async pass(ms: number): Promise<void> {
    const untilMs = this.scene.clock.monotonicMs() + ms;
    while (this.scene.clock.monotonicMs() < untilMs) await this.step();
  }

  async step(): Promise<void> {
    await this.scene.clock.advance(STEP_MS);
    for (const nec of this.objects('nodeeniconfigs')) {
      if (!this.deadNodes.has(nec.metadata.name)) await this.#agentTurn(nec.metadata.name);
    }
    const ips = [...this.sandboxes.values()].filter(({ node }) => !this.deadNodes.has(node)).map(({ ip }) => ip);
    if (new Set(ips).size !== ips.length) throw new Error(`two sandboxes have one address: ${ips.join(' ')}`);
  }

  async #agentTurn(node: string): Promise<void> {
    const nec = this.scene.nec(node);
    if (nec === undefined) return;
    const { supplyEpoch = 0 } = this.statusOf(node) ?? {};
    // An older state than one that was in force is not believed.
    const epoch = Math.max(supplyEpoch, this.#epochs.get(node) ?? 0);
    this.#epochs.set(node, epoch);
    const isBelieved = supplyEpoch === epoch;
    if (isBelieved) await this.#startSandboxes(node);
    const spec = isRecord(nec['spec']) ? nec['spec'] : {};
    const offers = isBelieved ? this.#offersOf(node) : [];
    const wanted = { desiredRouteENIIP: 0, releasableIPs: offers, observedSupplyEpoch: epoch };
    if (JSON.stringify(wanted) === JSON.stringify(pick(spec, Object.keys(wanted)))) return;
    const change = (current: KubeObject): KubeObject => {
      const before = isRecord(current['spec']) ? current['spec'] : {};
      return { ...current, spec: { ...before, ...wanted } };
    };
    const guard = { current: nec, attempts: 1 };
    await this.run(updateGuarded(this.scene.kube, NODE_ENI_CONFIGS, { name: node }, change, guard)).catch(() => {});
  }

  #marked(node: string) {
    return (this.statusOf(node)?.eniInfos ?? []).flatMap(({ addresses = [], eniID }) =>
      addresses.flatMap((one) => (one.claim === undefined ? [] : [{ ...one, claim: one.claim, eniID }])),
    );
  }

  /** The interface of an ENI is in the node's kernel only once the cloud has attached it, whatever the object says. */
  #isPlugged(node: string, eniId: string): boolean {
    return this.scene.host.model.state.enis.get(eniId)?.attachment?.instanceId === `ins-static${node}`;
  }

  async #startSandboxes(node: string): Promise<void> {
    const offered = new Set(this.#storedOffers(node));
    for (const [uid, { pod, node: on }] of this.#started) {
      if (on !== node || this.sandboxes.has(uid)) continue;
      const mine = this.#marked(node).find(
        (one) => one.claim.name === pod && one.claim.uid === uid && one.state === 'Assigned' && !offered.has(one.ip),
      );
      if (mine === undefined || !this.#isPlugged(node, mine.eniID)) continue;
      // The agent gives nothing that a sandbox of its own still has.
      if ([...this.sandboxes.values()].some(({ ip, node: there }) => ip === mine.ip && there === node)) continue;
      this.sandboxes.set(uid, { pod, uid, node, ip: mine.ip });
      const body = { status: { phase: 'Running', podIP: mine.ip, podIPs: [{ ip: mine.ip }] } };
      const ref = { namespace: 'default', name: pod };
      await this.run(this.scene.kube.patch(PODS, ref, { kind: 'merge', body, subresource: 'status' })).catch(() => {});
    }
  }

  #storedOffers(node: string): readonly string[] {
    const spec = this.scene.nec(node)?.['spec'];
    const list = isRecord(spec) && Array.isArray(spec['releasableIPs']) ? spec['releasableIPs'] : [];
    return list.map((one: unknown) => (isRecord(one) ? String(one['ip']) : ''));
  }

  #offersOf(node: string) {
    // What was taken over while the node was away has no routes any more.
    for (const [uid, one] of this.sandboxes) {
      const enis = this.statusOf(node)?.eniInfos ?? [];
      const isHere = enis.some(({ addresses = [] }) => addresses.some(({ ip }) => ip === one.ip));
      if (one.node !== node || isHere) continue;
      this.sandboxes.delete(uid);
      if (this.podUidOf(one.pod) !== uid) this.#started.delete(uid);
    }
    const used = new Set([...this.sandboxes.values()].filter((one) => one.node === node).map(({ ip }) => ip));
    return this.#marked(node)
      .filter(({ claim, ip, state }) => state === 'Assigned' && !used.has(ip) && !this.#started.has(claim.uid ?? ''))
      .map(({ ip, assignmentID }) => ({ ip, assignmentID }));
  }

  /** Somebody else's ENI has an address. Returns what gives it back. */
  takeIp(ip: string, subnetId: string): () => void {
    const { state } = this.scene.host.model;
    const subnet = state.subnets.get(subnetId);
    if (subnet === undefined) throw new Error(`no ${subnetId}`);
    subnet.pool.takeExact(ip);
    const eni = state.makeEni({
      subnet,
      ip,
      name: 'of-others',
      description: '',
      groups: [],
      tags: {},
      isPrimary: false,
    });
    eni.state = 'AVAILABLE';
    return () => state.removeEni(eni);
  }

  async annotateVip(ip: string, name: string, value: string): Promise<void> {
    const body = { metadata: { annotations: { [name]: value } } };
    await this.run(this.scene.kube.patch(VIPS, { name: ip }, { kind: 'merge', body }));
  }

  podUidOf(name: string): unknown {
    const pod = this.scene.server.objects('pods').find(({ metadata }) => metadata['name'] === name);
    return pod?.metadata['uid'];
  }

  async deleteVip(ip: string): Promise<void> {
    await this.run(this.scene.kube.delete(VIPS, { name: ip }));
  }

  async deleteClaim(name: string): Promise<void> {
    await this.run(this.scene.kube.delete(CLAIMS, { namespace: 'default', name }));
  }
}

function pick(from: Readonly<Record<string, unknown>>, keys: readonly string[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(keys.filter((key) => key in from).map((key) => [key, from[key]]));
}
