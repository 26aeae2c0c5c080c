import { recordsOf, textOf, textsOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { AuditedWorld, OpenAuditor } from './auditor.ts';
import { necFacts } from './nec-facts.ts';

/** A5: what a sandbox has is not taken off its ENI, nor its ENI off the node, nor either out of the object. */
export const openAddressesInUse: OpenAuditor = (world) => ({
  name: 'A5',
  arrives: ({ action, params }) => {
    const eniId = textOf(params['NetworkInterfaceId']) || textOf(params['SourceNetworkInterfaceId']);
    // A late call about an instance that no longer has the ENI changes nothing.
    const instanceId = textOf(params['InstanceId']);
    if (instanceId !== '' && instanceId !== world.host.model.state.enis.get(eniId)?.attachment?.instanceId) return;
    const used = world.machines.flatMap((machine) => machine.usedOn(eniId));
    const taken = takenBy(action, params, used);
    for (const ip of taken)
      if (used.includes(ip)) world.violate('A5', `${action} takes ${ip}, which is in use on ${eniId}`);
  },
  // What a sandbox has stays in the object of its node for as long as the cloud has it there, unless people edit that.
  change: (plural, { object, previous, type }) => {
    if (world.writer === 'people') return;
    const machine = world.machines.find(({ name }) => name === object.metadata.name);
    if (plural !== 'nodeeniconfigs' || type !== 'MODIFIED' || previous === undefined || machine === undefined) return;
    const left = new Set(addressesOf(object));
    for (const ip of addressesOf(previous))
      if (!left.has(ip) && isServed(world, machine.instanceId, ip) && isInUse(machine, ip))
        world.violate('A5', `${ip} is taken out of ${machine.name}, where it is in use`);
  },
});

function addressesOf(object: KubeObject): readonly string[] {
  return (necFacts(object).status.eniInfos ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip));
}

function isInUse({ kubelet, isOff }: AuditedWorld['machines'][number], ip: string): boolean {
  return !isOff && [...kubelet.sandboxes.values()].some(({ ips }) => ips.includes(ip));
}

/** Reports whether the cloud brings packets to an address to this instance. */
export function isServed({ host }: AuditedWorld, instanceId: string, ip: string): boolean {
  const enis = [...host.model.state.enisOf(instanceId)];
  return enis.some((eni) => eni.state === 'AVAILABLE' && eni.ips.get(ip)?.state === 'AVAILABLE');
}

function takenBy(
  action: string,
  params: Readonly<Record<string, unknown>>,
  used: readonly string[],
): readonly string[] {
  switch (action) {
    case 'UnassignPrivateIpAddresses':
      return recordsOf(params['PrivateIpAddresses']).map((one) => textOf(one['PrivateIpAddress']));
    case 'MigratePrivateIpAddress':
      return [textOf(params['PrivateIpAddress']), ...textsOf(params['PrivateIpAddresses'])];
    case 'DetachNetworkInterface':
    case 'DeleteNetworkInterface':
      return used;
    default:
      return [];
  }
}
