import { POD_ANNOTATION } from '../../../../crd/names.ts';
import type { NodeEniConfigSpec } from '../../../../crd/node-eni-config-fields.ts';
import type { KubeObject, OwnerReference } from '../../../../kube/kube-client.ts';
import { VPC_IP_CLAIMS, VPC_IPS } from '../../../../kube/resource-types.ts';
import { isRecord } from '../../../../runtime/decode.ts';
import { type NodeZones, PodCluster, type Sandbox } from '../../shell/pod-cluster.ts';
import type { ShellScene } from '../../shell/shell-scene.ts';

/** On the mirror of a Pod from a kubelet's manifest: the uid of that Pod. */
export const MIRROR = 'kubernetes.io/config.mirror';

/**
 * A cluster whose agents hand kept addresses to sandboxes: each gets the address that is marked with its uid, and a marked
 * address without a sandbox, whose mark names none that wants one here, is offered back.
 */
export class StaticCluster extends PodCluster {
  private constructor(scene: ShellScene, flags: readonly string[]) {
    super(scene, ['--enable-static-ip=true', '--shutdown-grace=0s', ...flags]);
  }

  /** @param cores of the instances of nodes: one core has a single ENI with five addresses for Pods */
  static async make(nodes: NodeZones, flags: readonly string[] = [], cores = 8): Promise<StaticCluster> {
    const cluster = new StaticCluster(await PodCluster.openScene(), flags);
    await cluster.joinNodes(nodes, { cores });
    return cluster;
  }

  /** A Pod whose address is kept; '' for one that has no node yet. Returns its uid. */
  async createPod(
    name: string,
    node: string,
    annotations: Readonly<Record<string, string>> = {},
    owner?: OwnerReference,
  ): Promise<string> {
    const own = { [POD_ANNOTATION.networks]: 'tke-route-eni', [POD_ANNOTATION.deletePolicy]: 'Never', ...annotations };
    const metadata = { labels: { app: 'web' }, ...(owner === undefined ? {} : { ownerReferences: [owner] }) };
    // The kubelet knows a Pod of its own manifest by another uid than that of its mirror.
    return await this.makePod(name, node, own, { metadata, kubeletUid: annotations[MIRROR] });
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

  protected override check(): void {
    const ips = [...this.sandboxes.values()].map(({ ip }) => ip);
    if (new Set(ips).size !== ips.length) throw new Error(`two sandboxes have one address: ${ips.join(' ')}`);
  }

  protected override grant(node: string, pod: string, uid: string): Pick<Sandbox, 'ip' | 'eniId'> | undefined {
    const offered = new Set((this.specOf(node).releasableIPs ?? []).map(({ ip }) => ip));
    const mine = this.#marked(node).find(
      (one) => one.claim.name === pod && one.claim.uid === uid && one.state === 'Assigned' && !offered.has(one.ip),
    );
    if (mine === undefined || !this.isOn(node, mine.eniID)) return undefined;
    // The agent gives nothing that a sandbox of its own still has.
    const isInUse = [...this.sandboxes.values()].some(({ ip, node: there }) => ip === mine.ip && there === node);
    return isInUse ? undefined : { ip: mine.ip, eniId: mine.eniID };
  }

  /** Nothing for a pool; offered is what is marked, without a sandbox, and for no Pod that is to run here. */
  protected override demandOf(node: string, isBelieved: boolean): Partial<NodeEniConfigSpec> {
    if (!isBelieved) return { desiredRouteENIIP: 0, releasableIPs: [] };
    const used = new Set([...this.sandboxes.values()].filter((one) => one.node === node).map(({ ip }) => ip));
    const releasableIPs = this.#marked(node)
      .filter(({ claim, ip, state }) => state === 'Assigned' && !used.has(ip) && !this.started.has(claim.uid ?? ''))
      .map(({ ip, assignmentID }) => ({ ip, assignmentID }));
    return { desiredRouteENIIP: 0, releasableIPs };
  }

  #marked(node: string) {
    return (this.statusOf(node).eniInfos ?? []).flatMap(({ addresses = [], eniID }) =>
      addresses.flatMap((one) => (one.claim === undefined ? [] : [{ ...one, claim: one.claim, eniID }])),
    );
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

  async deleteVip(ip: string): Promise<void> {
    await this.run(this.scene.kube.delete(VPC_IPS, { name: ip }));
  }

  async deleteClaim(name: string): Promise<void> {
    await this.run(this.scene.kube.delete(VPC_IP_CLAIMS, { namespace: 'default', name }));
  }
}
