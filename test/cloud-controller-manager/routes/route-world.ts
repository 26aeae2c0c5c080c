import { NODES } from '../../../kube/resource-types.ts';
import { routeDescription } from '../../../pod-routes/decide-routes.ts';
import { NodeWorld, UNINITIALIZED } from '../node-world.ts';

const VPC = 'vpc-00000001';
const CLUSTER = 'cls-routes01';
/** Networks of Pods of the cluster here. */
export const CLUSTER_CIDR = '172.16.0.0/16';
/** Description of the cluster's own routes. */
export const OWN = routeDescription(CLUSTER);

/** A route as tests compare it. */
type SeenRoute = { readonly cidr: string; readonly gatewayIp: string; readonly description: string };

/** Nodes with podCIDRs, the route controller, and the routes that the cloud has. */
export class RouteWorld {
  readonly world: NodeWorld;
  readonly #flags: readonly string[];
  readonly #ips = new Map<string, string>();

  private constructor(world: NodeWorld, flags: readonly string[]) {
    this.world = world;
    this.#flags = flags;
  }

  static async start(...flags: readonly string[]): Promise<RouteWorld> {
    const all = ['--routes=global', `--cluster-cidr=${CLUSTER_CIDR}`, `--clusterid=${CLUSTER}`, `--vpc-id=${VPC}`];
    const used = [...new Map([...all, ...flags].map((flag) => [flag.split('=')[0], flag])).values()];
    const one = new RouteWorld(await NodeWorld.start(...used), used);
    await one.advance(20_000);
    return one;
  }

  /** Another process in the place of this one, which ends without a word. */
  async replace(): Promise<void> {
    await this.world.lead(...this.#flags);
  }

  /** Starts a machine and registers its Node as a kubelet does that waits for its cloud provider. */
  async join(name: string, podCIDR?: string, capacity?: Readonly<Record<string, string>>): Promise<string> {
    const ip = this.world.addInstance(`ins-route${name}`);
    this.#ips.set(name, ip);
    await this.world.join(name, {
      providerID: `qcloud:///100003/ins-route${name}`,
      addresses: [{ type: 'InternalIP', address: ip }],
      taints: [UNINITIALIZED],
      ...(podCIDR === undefined ? {} : { podCIDR }),
      ...(capacity === undefined ? {} : { capacity }),
    });
    return ip;
  }

  /** Ends the machine and deletes its Node. */
  async leave(name: string): Promise<void> {
    const { clock, admin, host } = this.world.scene;
    host.model.advance(clock.nowMs());
    host.model.state.removeInstance(`ins-route${name}`);
    await clock.run(admin.delete(NODES, { name }));
  }

  ipOf(name: string): string {
    return this.#ips.get(name) ?? '';
  }

  routes(): readonly SeenRoute[] {
    return [...this.world.scene.host.model.state.globalRoutes.values()];
  }

  addRoute(cidr: string, gatewayIp: string, description: string): void {
    this.world.scene.host.model.state.addGlobalRoute({ vpcId: VPC, cidr, gatewayIp, description });
  }

  removeRoutes(cidr: string): void {
    const { state } = this.world.scene.host.model;
    for (const route of [...state.globalRoutes.values()]) if (route.cidr === cidr) state.removeGlobalRoute(route);
  }

  /** Status and reason of the condition NetworkUnavailable; undefined when there is none. */
  networkOf(name: string): string | undefined {
    const node = this.world.scene.server.objects('nodes').find(({ metadata }) => metadata.name === name);
    const status = node?.['status'] as
      | { readonly conditions?: readonly { type: string; status: string; reason: string }[] }
      | undefined;
    const condition = status?.conditions?.find(({ type }) => type === 'NetworkUnavailable');
    return condition === undefined ? undefined : `${condition.status} ${condition.reason}`;
  }

  async metrics(): Promise<string> {
    return await this.world.metrics();
  }

  async advance(ms: number): Promise<void> {
    await this.world.advance(ms);
  }

  async stop(): Promise<void> {
    await this.world.stop();
  }
}
