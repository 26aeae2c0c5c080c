import { API_GROUP, POD_ANNOTATION } from '../../../crd/names.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import type { RunningIpamd } from '../../../ipamd/ipamd.ts';
import { NODE_ENI_CONFIGS } from '../../../ipamd/node-lifecycle/node-eni-configs.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { CONFIG_MAPS, NODES, PODS } from '../../../kube/resource-types.ts';
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

type Started = { readonly pod: string; readonly node: string; readonly isMarked: boolean };
/** A sandbox that has an ENI. */
type Sandbox = { readonly node: string; readonly eniId: string; readonly ip: string };

const STEP_MS = 250;
const LIMIT_MS = 600_000;

/** A cluster in this process whose agents hand whole ENIs to sandboxes, as short as can be. */
export class DirectCluster {
  readonly scene: ShellScene;
  readonly sandboxes = new Map<string, Sandbox>();
  readonly #started = new Map<string, Started>();
  #ipamd: RunningIpamd | undefined;

  private constructor(scene: ShellScene) {
    this.scene = scene;
  }

  static async make(
    nodes: Readonly<Record<string, 3 | 4>>,
    { cores = 2, ...places }: { readonly cores?: number; readonly extendEnis?: number } = {},
  ): Promise<DirectCluster> {
    const scene = await shellScene(CLOUD);
    const cluster = new DirectCluster(scene);
    const ref = { namespace: 'kube-system', name: 'tke-eni-ipamd' };
    const data = { TKE_ENI_IPAMD_SUBNET_ID: 'subnet-pods0001:subnet-pods0002', TKE_ENI_IPAMD_VPC_ID: CLOUD.vpcId };
    await cluster.run(updateGuarded(scene.kube, CONFIG_MAPS, ref, (current) => ({ ...current, data })));
    for (const [name, zone] of Object.entries(nodes)) {
      const instanceId = `ins-direct${name}`;
      const subnetId = zone === 3 ? 'subnet-node0001' : 'subnet-node0002';
      scene.host.model.state.addInstance({ instanceId, cores, subnetId, ...places });
      const providerID = `qcloud:///100003/${instanceId}`;
      const status = { conditions: [{ type: 'Ready', status: 'True' }] };
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: { providerID }, status };
      await cluster.run(scene.kube.create(NODES, node));
    }
    return cluster;
  }

  async run<T>(promise: Promise<T>): Promise<T> {
    return await this.scene.clock.run(promise);
  }

  async startIpamd(...flags: readonly string[]): Promise<void> {
    const own = ['--enable-static-ip=true', '--enable-direct-eni=true', '--leader-elect=false'];
    const isSet = (flag: string) => flags.some((one) => one.split('=')[0] === flag.split('=')[0]);
    this.#ipamd = await this.scene.start({ flags: [...own.filter((flag) => !isSet(flag)), ...flags] });
  }

  /** As a kill: what is under way is cut off, and a new process starts with nothing. */
  async restartIpamd(): Promise<void> {
    await this.stopIpamd();
    await this.startIpamd();
  }

  async stopIpamd(): Promise<void> {
    if (this.#ipamd !== undefined) await this.run(this.#ipamd.close());
    this.#ipamd = undefined;
  }

  /** A Pod with an exclusive ENI. Returns its uid. */
  async createPod(name: string, node: string, annotations: Readonly<Record<string, string>> = {}): Promise<string> {
    const own = { [POD_ANNOTATION.networks]: 'tke-direct-eni', ...annotations };
    const made = await this.run(
      this.scene.kube.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default', annotations: own },
        spec: { containers: [{ name: 'c', image: 'i' }], nodeName: node },
        status: { phase: 'Pending' },
      }),
    );
    const { uid = '' } = made.metadata;
    const isMarked = POD_ANNOTATION.deletePolicy in annotations || POD_ANNOTATION.securityGroups in annotations;
    this.#started.set(uid, { pod: name, node, isMarked });
    return uid;
  }

  /** A Pod whose ENI is kept. */
  async createKept(name: string, node: string, annotations: Readonly<Record<string, string>> = {}): Promise<string> {
    return await this.createPod(name, node, { [POD_ANNOTATION.deletePolicy]: 'Never', ...annotations });
  }

  async deletePod(name: string): Promise<void> {
    const { server, clock } = this.scene;
    const resource = server.api.registry.find('', 'v1', 'pods');
    if (resource === undefined) throw new Error('no Pods');
    const target = { resource, namespace: 'default', name, subresource: '' };
    const query = new URLSearchParams('gracePeriodSeconds=0');
    dispatch(server.api, 'delete', { ...target, query, user: ADMIN, userAgent: 'kubelet', contentType: '', body: {} });
    await clock.advance(1);
    for (const [uid, { pod }] of this.#started) {
      if (pod !== name) continue;
      this.#started.delete(uid);
      this.sandboxes.delete(uid);
    }
  }

  objects(plural: string): readonly KubeObject[] {
    // The store's objects are those of the API.
    return this.scene.server.objects(plural, API_GROUP) as readonly KubeObject[];
  }

  events(): readonly string[] {
    return this.scene.server.objects('events').map((one) => `${String(one['reason'])} ${String(one['message'])}`);
  }

  statusOf(node: string): NodeEniConfigStatus {
    // Checked by the schema of the API server.
    return (this.scene.nec(node)?.['status'] ?? {}) as NodeEniConfigStatus;
  }

  specOf(node: string): NodeEniConfigSpec {
    // Checked by the schema of the API server.
    return (this.scene.nec(node)?.['spec'] ?? {}) as NodeEniConfigSpec;
  }

  direct(node: string): readonly NodeEniInfo[] {
    return (this.statusOf(node).eniInfos ?? []).filter(({ mode }) => mode === 'direct-eni');
  }

  /** How the VpcENI of an ENI stands: phase, node and claim. */
  kept(eniId: string): readonly unknown[] | undefined {
    const found = this.objects('vpcenis').find(({ status }) => isRecord(status) && status['eniID'] === eniId);
    if (found === undefined) return undefined;
    const [spec, status] = [found['spec'], found['status']].map((one) => (isRecord(one) ? one : {}));
    const claim = spec?.['claimRef'];
    return [status?.['phase'], spec?.['nodeName'], isRecord(claim) ? claim['name'] : undefined];
  }

  /** Security groups of an ENI in the cloud. */
  groupsOf(eniId: string): readonly string[] {
    return this.scene.host.model.state.enis.get(eniId)?.securityGroupIds ?? [];
  }

  /** Exclusive ENIs that the cloud has. */
  cloudEnis(): readonly string[] {
    const all = [...this.scene.host.model.state.enis.values()];
    return all.filter(({ tags }) => tags['tke-eni-mode'] === 'direct-eni').map(({ eniId }) => eniId);
  }

  /** Goes on until it holds. @throws Error when it does not, or when two sandboxes have one ENI. */
  async until(holds: () => boolean, what: string): Promise<void> {
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
    for (const { metadata } of this.objects('nodeeniconfigs')) await this.#agentTurn(metadata.name);
    const used = [...this.sandboxes.values()].map(({ eniId }) => eniId);
    if (new Set(used).size !== used.length) throw new Error(`two sandboxes have one ENI: ${used.join(' ')}`);
    for (const { node, eniId } of this.sandboxes.values()) {
      const { attachment } = this.scene.host.model.state.enis.get(eniId) ?? {};
      if (attachment === undefined) throw new Error(`${eniId} of a sandbox is on no instance`);
      // An object that is made anew has none before it is filled from the cloud.
      if (this.statusOf(node).eniInfos === undefined) continue;
      const eni = this.direct(node).find(({ eniID }) => eniID === eniId);
      if (eni?.state !== 'Attached') throw new Error(`${eniId} of a sandbox is ${eni?.state ?? 'gone'}`);
    }
  }

  async #agentTurn(node: string): Promise<void> {
    const nec = this.scene.nec(node);
    if (nec === undefined) return;
    await this.#startSandboxes(node);
    const spec = this.specOf(node);
    const { supplyEpoch = 0, staticDirectENIs = 0 } = this.statusOf(node);
    const enis = this.direct(node).filter(({ state }) => state === 'Attached');
    const used = new Set([...this.sandboxes.values()].map(({ eniId }) => eniId));
    const pool = enis.filter(({ claim }) => claim === undefined);
    const inUse = pool.filter(({ eniID }) => used.has(eniID)).length;
    const waiting = [...this.#started].filter(
      ([uid, one]) => one.node === node && !one.isMarked && !this.sandboxes.has(uid),
    ).length;
    const limit = Math.max(0, (spec.maxDirectENI ?? 0) - staticDirectENIs);
    const desiredDirectENI = Math.min(limit, inUse + waiting + 1);
    const free = pool.filter(({ eniID }) => !used.has(eniID));
    const surplus = free.slice(0, Math.max(0, pool.length - desiredDirectENI));
    const kept = enis.filter(({ eniID, claim }) => {
      return claim !== undefined && !used.has(eniID) && !this.#started.has(claim.uid ?? '');
    });
    const releasableENIs = [...surplus, ...kept].map(({ eniID, assignmentID = '' }) => ({ eniID, assignmentID }));
    const own = { desiredRouteENIIP: 0, desiredDirectENI, releasableENIs, observedSupplyEpoch: supplyEpoch };
    const wanted = { ...spec, ...own };
    if (JSON.stringify(wanted) === JSON.stringify(spec)) return;
    const guard = { current: nec, attempts: 1 };
    const change = (current: KubeObject): KubeObject => ({ ...current, spec: { ...spec, ...own } });
    await this.run(updateGuarded(this.scene.kube, NODE_ENI_CONFIGS, { name: node }, change, guard)).catch(() => {});
  }

  async #startSandboxes(node: string): Promise<void> {
    const spec = this.specOf(node);
    const offered = new Set((spec.releasableENIs ?? []).map(({ eniID }) => eniID));
    for (const [uid, { pod, node: on, isMarked }] of this.#started) {
      if (on !== node || this.sandboxes.has(uid)) continue;
      const used = new Set([...this.sandboxes.values()].map(({ eniId }) => eniId));
      const eni = this.direct(node).find(({ eniID, state, claim, draining }) => {
        if (state !== 'Attached' || used.has(eniID) || offered.has(eniID)) return false;
        return isMarked ? claim?.name === pod && claim.uid === uid : claim === undefined && draining !== true;
      });
      if (eni?.primaryIP === undefined) continue;
      this.sandboxes.set(uid, { node, eniId: eni.eniID, ip: eni.primaryIP });
      const body = { status: { phase: 'Running', podIP: eni.primaryIP, podIPs: [{ ip: eni.primaryIP }] } };
      const ref = { namespace: 'default', name: pod };
      await this.run(this.scene.kube.patch(PODS, ref, { kind: 'merge', body, subresource: 'status' })).catch(() => {});
    }
  }
}
