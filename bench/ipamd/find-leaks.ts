import { readNec } from './seen-nec.ts';
import type { World } from './world.ts';

/** Compares the cloud with the objects and the Pods of a simulated cluster: one text for each thing that does not agree. */
export function findLeaks({ host, api, agents }: World): readonly string[] {
  const known = new Map<string, string>();
  const leaks: string[] = [];
  const enis = new Set<string>();
  for (const object of api.objects('nodeeniconfigs', 'networking.tke.cloud.tencent.com')) {
    const { supply } = readNec(object);
    for (const eni of supply.enis) {
      enis.add(eni.eniId);
      for (const { ip } of eni.addresses) {
        const other = known.get(ip);
        if (other !== undefined) leaks.push(`${ip} is on ${other} and on ${eni.eniId} by the objects`);
        known.set(ip, eni.eniId);
      }
    }
  }
  for (const eni of host.model.state.enis.values()) {
    if (eni.isPrimary) continue;
    if (!enis.delete(eni.eniId)) leaks.push(`${eni.eniId} is in the cloud and in no object`);
    for (const { ip, isPrimary } of eni.ips.values()) {
      if (isPrimary) continue;
      if (known.get(ip) === eni.eniId) known.delete(ip);
      else leaks.push(`${ip} of ${eni.eniId} is in the cloud and not in its object`);
    }
  }
  for (const eniId of enis) leaks.push(`${eniId} is in an object and not in the cloud`);
  for (const [ip, eniId] of known) leaks.push(`${ip} of ${eniId} is in an object and not in the cloud`);
  const owners = new Set<string>();
  for (const ip of agents.flatMap((agent) => agent.addresses)) {
    if (owners.has(ip)) leaks.push(`two Pods have ${ip}`);
    owners.add(ip);
  }
  return leaks;
}
