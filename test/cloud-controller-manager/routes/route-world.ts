import type { RouteKind } from '../../../cloud/cloud.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { routeDescription } from '../../../pod-routes/decide-routes.ts';
import type { RouteTableBook } from '../../../sim/vpc/api/model/route-table-book.ts';
import { NodeWorld, UNINITIALIZED } from '../node-world.ts';

const VPC = 'vpc-00000001';
const CLUSTER = 'cls-routes01';
/** Networks of Pods of the cluster here. */
export const CLUSTER_CIDR = '172.16.0.0/16';
/** Description of the cluster's own routes. */
export const OWN = routeDescription(CLUSTER);

/** A route as tests compare it; the same id is the same route. */
type SeenRoute = {
  readonly place: string;
  readonly routeId: string | number;
  readonly cidr: string;
  readonly gatewayIp: string;
  readonly description: string;
};

/** Nodes with podCIDRs, the route controller, and the routes that the cloud has. */
export class RouteWorld {
  readonly world: NodeWorld;
  /** What routes are kept in: the VPC, or route tables. */
  readonly places: readonly string[];
  readonly #kind: RouteKind;
  readonly #flags: readonly string[];
  readonly #ips = new Map<string, string>();

  private constructor(world: NodeWorld, flags: readonly string[]) {
    this.world = world;
    this.#flags = flags;
    const textOf = (flag: string) => flags.find((one) => one.startsWith(`${flag}=`))?.slice(flag.length + 1);
    const kind = textOf('--routes');
    this.#kind = kind === 'table' || kind === 'cluster' ? kind : 'global';
    if (this.#kind === 'table') this.places = textOf('--route-tables')?.split(',') ?? [];
    else this.places = [this.#kind === 'global' ? VPC : (textOf('--cluster-route-table') ?? CLUSTER)];
    const { state } = world.scene.host.model;
    const book = this.#kind === 'table' ? state.routeTables : state.clusterRouteTables;
    if (this.#kind !== 'global') for (const place of this.places) book.addTable(place, VPC);
  }

  static async start(...flags: readonly string[]): Promise<RouteWorld> {
    const all = ['--routes=global', `--cluster-cidr=${CLUSTER_CIDR}`, `--clusterid=${CLUSTER}`, `--vpc-id=${VPC}`];
    const used = [...new Map([...all, ...flags].map((flag) => [flag.split('=')[0], flag])).values()];
    const one = new RouteWorld(await NodeWorld.start(...used), used);
    await one.advance(20_000);
    return one;
  }

  /** Another process in the place of this one, which ends without a word; flags may take the place of those of the start. */
  async replace(...flags: readonly string[]): Promise<void> {
    const all = [...this.#flags, ...flags].map((flag) => [flag.split('=')[0], flag] as const);
    await this.world.lead(...new Map(all).values());
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

  /** The routes of all places. */
  routes(): readonly SeenRoute[] {
    const { state } = this.world.scene.host.model;
    if (this.#kind === 'global') return [...state.globalRoutes.values()].map((one) => ({ ...one, place: one.vpcId }));
    return this.places.flatMap((place) =>
      (this.#book().tables.get(place)?.routes ?? []).map((one) => ({ ...one, place })),
    );
  }

  /** Makes a route as people do, by default in the first place. */
  addRoute(cidr: string, gatewayIp: string, description: string, place = this.places[0] ?? ''): void {
    const { model } = this.world.scene.host;
    model.advance(this.world.scene.clock.nowMs());
    if (this.#kind === 'global') model.state.addGlobalRoute({ vpcId: place, cidr, gatewayIp, description });
    else this.#book().add(place, [{ cidr, gatewayIp, description }]);
  }

  /** Deletes the routes to a network, of all places, as people do. */
  removeRoutes(cidr: string): void {
    const { model } = this.world.scene.host;
    model.advance(this.world.scene.clock.nowMs());
    const { state } = model;
    for (const route of [...state.globalRoutes.values()]) if (route.cidr === cidr) state.removeGlobalRoute(route);
    if (this.#kind === 'global') return;
    for (const place of this.places) {
      const { routes } = this.#book().get(place);
      this.#book().remove(
        place,
        routes.filter((route) => route.cidr === cidr),
      );
    }
  }

  #book(): RouteTableBook {
    const { state } = this.world.scene.host.model;
    return this.#kind === 'table' ? state.routeTables : state.clusterRouteTables;
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
