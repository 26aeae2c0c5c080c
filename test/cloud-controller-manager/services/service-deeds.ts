import { type ServiceWorld, SUBNET } from './service-world.ts';

/** What the owner of a Service asked for last; an empty range is everyone. */
export type Wanted = { port: number; isInternal: boolean; range: string };

/** What the owner of a Service does to it. */
type Deed =
  | { readonly kind: 'create'; readonly name: string; readonly isInternal: boolean }
  | { readonly kind: 'delete'; readonly name: string }
  | { readonly kind: 'port'; readonly name: string; readonly port: number }
  | { readonly kind: 'move'; readonly name: string; readonly isInternal: boolean }
  | { readonly kind: 'ranges'; readonly name: string; readonly range: string };

/** Ports, and source ranges, among which owners choose. */
export const PORTS = [80, 81] as const;
export const RANGES = ['10.0.0.0/8', '192.0.2.0/24', ''] as const;

const ALLOW = { 'tke.cloud.tencent.com/allow-address-change': 'true' };
const INTERNAL = 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid';

/** Does it, and notes in `wanted` what is asked for then; nothing to a Service that is not there, or is there already. */
export async function doDeed(world: ServiceWorld, wanted: Map<string, Wanted>, deed: Deed): Promise<void> {
  const { name } = deed;
  if (deed.kind === 'create') {
    // One that is being deleted has the name still.
    if (world.service(name) !== undefined) return;
    const annotations = { ...ALLOW, ...(deed.isInternal ? { [INTERNAL]: SUBNET } : {}) };
    await world.create(name, { metadata: { annotations } });
    wanted.set(name, { port: 80, isInternal: deed.isInternal, range: '' });
    return;
  }
  const now = wanted.get(name);
  if (now === undefined) return;
  if (deed.kind === 'delete') {
    await world.delete(name);
    wanted.delete(name);
  }
  if (deed.kind === 'port') {
    await world.patch(name, { spec: { ports: [{ port: deed.port }] } });
    now.port = deed.port;
  }
  if (deed.kind === 'ranges') {
    await world.patch(name, { spec: { loadBalancerSourceRanges: deed.range === '' ? null : [deed.range] } });
    now.range = deed.range;
  }
  if (deed.kind === 'move') {
    await world.patch(name, { metadata: { annotations: { [INTERNAL]: deed.isInternal ? SUBNET : null } } });
    now.isInternal = deed.isInternal;
  }
}
