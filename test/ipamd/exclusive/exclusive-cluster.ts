import { POD_ANNOTATION } from '../../../crd/names.ts';
import type { NodeEniConfigSpec, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { recordOf } from '../../../runtime/json.ts';
import { type NodeZones, PodCluster, type Sandbox } from '../shell/pod-cluster.ts';
import type { ShellScene } from '../shell/shell-scene.ts';

const FLAGS = ['--enable-static-ip=true', '--enable-direct-eni=true'];

/** A cluster whose agents hand whole ENIs to sandboxes. */
export class DirectCluster extends PodCluster {
  /** Uids of Pods that get an ENI with their mark, and none of the pool. */
  readonly #marked = new Set<string>();

  private constructor(scene: ShellScene) {
    super(scene, FLAGS);
  }

  static async make(
    nodes: NodeZones,
    { cores = 2, ...places }: { readonly cores?: number; readonly extendEnis?: number } = {},
  ): Promise<DirectCluster> {
    const cluster = new DirectCluster(await PodCluster.openScene());
    await cluster.joinNodes(nodes, { cores, ...places });
    return cluster;
  }

  /** Ends ipamd, and starts a new process with nothing. */
  async restartIpamd(): Promise<void> {
    await this.stopIpamd();
    await this.startIpamd();
  }

  /** A Pod with an exclusive ENI. Returns its uid. */
  async createPod(name: string, node: string, annotations: Readonly<Record<string, string>> = {}): Promise<string> {
    const own = { [POD_ANNOTATION.networks]: 'tke-direct-eni', ...annotations };
    const uid = await this.makePod(name, node, own);
    const isMarked = POD_ANNOTATION.deletePolicy in annotations || POD_ANNOTATION.securityGroups in annotations;
    if (isMarked) this.#marked.add(uid);
    return uid;
  }

  /** A Pod whose ENI is kept. */
  async createKept(name: string, node: string, annotations: Readonly<Record<string, string>> = {}): Promise<string> {
    return await this.createPod(name, node, { [POD_ANNOTATION.deletePolicy]: 'Never', ...annotations });
  }

  direct(node: string): readonly NodeEniInfo[] {
    return (this.statusOf(node).eniInfos ?? []).filter(({ mode }) => mode === 'direct-eni');
  }

  /** How the VpcENI of an ENI stands: phase, node and claim. */
  kept(eniId: string): readonly unknown[] | undefined {
    const found = this.objects('vpcenis').find(({ status }) => recordOf(status)['eniID'] === eniId);
    if (found === undefined) return undefined;
    const { nodeName, claimRef } = recordOf(found['spec']);
    return [recordOf(found['status'])['phase'], nodeName, recordOf(claimRef)['name']];
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

  protected override check(): void {
    const used = [...this.#used()];
    if (used.length !== this.sandboxes.size) throw new Error(`two sandboxes have one ENI: ${used.join(' ')}`);
    for (const { node, eniId } of this.sandboxes.values()) {
      const { attachment } = this.scene.host.model.state.enis.get(eniId) ?? {};
      if (attachment === undefined) throw new Error(`${eniId} of a sandbox is on no instance`);
      // An object that is made again has none before it is filled from the cloud.
      if (this.statusOf(node).eniInfos === undefined) continue;
      const eni = this.direct(node).find(({ eniID }) => eniID === eniId);
      if (eni?.state !== 'Attached') throw new Error(`${eniId} of a sandbox is ${eni?.state ?? 'gone'}`);
    }
  }

  protected override grant(node: string, pod: string, uid: string): Pick<Sandbox, 'ip' | 'eniId'> | undefined {
    const offered = new Set((this.specOf(node).releasableENIs ?? []).map(({ eniID }) => eniID));
    const used = this.#used();
    const eni = this.direct(node).find(({ eniID, state, claim, draining }) => {
      if (state !== 'Attached' || used.has(eniID) || offered.has(eniID)) return false;
      return this.#marked.has(uid)
        ? claim?.name === pod && claim.uid === uid
        : claim === undefined && draining !== true;
    });
    return eni?.primaryIP === undefined ? undefined : { ip: eni.primaryIP, eniId: eni.eniID };
  }

  /** One spare ENI, and no more than the node may have; offered is what exceeds it, what ipamd drains, and kept ones without a Pod. */
  protected override demandOf(node: string, isBelieved: boolean): Partial<NodeEniConfigSpec> {
    const { maxDirectENI = 0 } = this.specOf(node);
    const { staticDirectENIs = 0 } = this.statusOf(node);
    const enis = this.direct(node).filter(({ state }) => state === 'Attached');
    const used = this.#used();
    const pool = enis.filter(({ claim }) => claim === undefined);
    const inUse = pool.filter(({ eniID }) => used.has(eniID)).length;
    const waiting = [...this.started].filter(
      ([uid, one]) => one.node === node && !this.#marked.has(uid) && !this.sandboxes.has(uid),
    ).length;
    const limit = Math.max(0, maxDirectENI - staticDirectENIs);
    const desiredDirectENI = Math.min(limit, inUse + waiting + 1);
    const free = pool.filter(({ eniID, draining }) => !used.has(eniID) && draining !== true);
    const leaving = pool.filter(({ eniID, draining }) => !used.has(eniID) && draining === true);
    const surplus = [...leaving, ...free.slice(0, Math.max(0, pool.length - leaving.length - desiredDirectENI))];
    const kept = enis.filter(
      ({ eniID, claim }) => claim !== undefined && !used.has(eniID) && !this.started.has(claim.uid ?? ''),
    );
    const offers = isBelieved ? [...surplus, ...kept] : [];
    const releasableENIs = offers.map(({ eniID, assignmentID = '' }) => ({ eniID, assignmentID }));
    return { desiredRouteENIIP: 0, desiredDirectENI, releasableENIs };
  }

  #used(): ReadonlySet<string> {
    return new Set([...this.sandboxes.values()].map(({ eniId }) => eniId));
  }
}
