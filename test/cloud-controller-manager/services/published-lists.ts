import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { isRecord } from '../../../runtime/decode.ts';
import { installKinds } from '../../../sim/kube-api/install-kinds.ts';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

const GROUP = 'networking.tke.cloud.tencent.com';
const NODES = ['n1', 'n2'];

/** Two nodes with NodeENIConfigs, as ipamd makes them. */
export async function startWithLists(...flags: readonly string[]) {
  const world = await ServiceWorld.start({ flags });
  for (const name of NODES) await world.join(name);
  await addLists(world, NODES);
  return { world, pods: new ServicePods(world) };
}

/** Makes the NodeENIConfigs of nodes. */
export async function addLists(world: ServiceWorld, nodes: readonly string[]): Promise<void> {
  const { clock, admin } = world.world.scene;
  await clock.run(installKinds(admin));
  for (const name of nodes)
    await clock.run(
      admin.create(NODE_ENI_CONFIGS, { apiVersion: `${GROUP}/v1`, kind: 'NodeENIConfig', metadata: { name } }),
    );
}

/** The NodeENIConfigs. */
export function listObjects(world: ServiceWorld) {
  return world.world.scene.server.objects('nodeeniconfigs', GROUP);
}

/** What is published of a node; undefined: nothing was ever. */
export function published(world: ServiceWorld, node: string): readonly string[] | undefined {
  const part = listObjects(world).find(({ metadata }) => metadata.name === node)?.['loadBalancers'];
  return isRecord(part) ? (part['registeredIPs'] as readonly string[]) : undefined;
}

/** Addresses that are targets and not published. */
export function unprotected(world: ServiceWorld): readonly string[] {
  const listed = new Set(NODES.flatMap((node) => published(world, node) ?? []));
  const targets = world
    .balancers()
    .flatMap(({ listeners }) =>
      [...listeners.values()].flatMap(({ targets: its, layer7 }) => [
        ...its.values(),
        ...[...(layer7?.rules.values() ?? [])].flatMap((rule) => [...rule.targets.values()]),
      ]),
    );
  return targets.flatMap(({ ip }) => (listed.has(ip) ? [] : [ip]));
}

export async function patchNec(world: ServiceWorld, name: string, body: object): Promise<void> {
  const { clock, admin } = world.world.scene;
  await clock.run(admin.patch(NODE_ENI_CONFIGS, { name }, { kind: 'merge', body }));
}

/** Fields of an ENI in whose subnet an address is. */
export function eniAround(ip: string) {
  const subnet = ip.split('.').slice(0, 3).join('.');
  return {
    ...{ eniID: 'eni-1', mac: '20:90:6f:00:00:01', state: 'Attached', primaryIP: `${subnet}.250` },
    ...{ gateway: `${subnet}.1`, subnetCIDR: `${subnet}.0/24` },
  };
}
