import { recordsOf, textOf, textsOf } from '../../../runtime/json.ts';
import type { OpenAuditor } from './auditor.ts';

/** A1 and A5: an address is in one sandbox, and what a sandbox has is not taken off its ENI, nor its ENI off the node. */
export const openAddressesInUse: OpenAuditor = (world) => ({
  name: 'A5',
  arrives: ({ action, params }) => {
    const eniId = textOf(params['NetworkInterfaceId']) || textOf(params['SourceNetworkInterfaceId']);
    const used = world.machines.flatMap((machine) => machine.usedOn(eniId));
    const taken = takenBy(action, params, used);
    for (const ip of taken)
      if (used.includes(ip)) world.violate('A5', `${action} takes ${ip}, which is in use on ${eniId}`);
  },
  step: () => {
    const owners = new Map<string, string>();
    for (const { kubelet } of world.machines) {
      for (const { ips, uid, pod } of kubelet.sandboxes.values())
        for (const ip of ips) {
          const other = owners.get(ip);
          if (other !== undefined && other !== uid)
            world.violate('A1', `${ip} is in two sandboxes, one is that of ${pod}`);
          owners.set(ip, uid);
        }
    }
  },
});

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
