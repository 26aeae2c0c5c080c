import { recordOf, textOf } from '../../../runtime/json.ts';
import type { OpenAuditor } from './auditor.ts';
import { necFacts } from './nec-facts.ts';

/**
 * A11 and A12: before the kernel has a Pod's link, the disk has its lease; before an object offers an address, the disk has the
 * offer; an agent that serves has no half-made lease but those of ADDs under way.
 */
export const openAgentDisk: OpenAuditor = (world) => ({
  name: 'A11',
  changes: (name, call, [spec]) => {
    if (call !== 'link.addPair' && call !== 'link.add') return;
    const { ifname, kind, address } = recordOf(spec);
    const whole = world.machines.find((one) => one.name === name)?.whole;
    if (whole === undefined || (kind !== undefined && kind !== 'veth')) return;
    // Where another sandbox of the Pod has the name, the link has another one: its MAC says whose it is.
    const isKnown = whole.leases.some(
      ({ state, hostVeth }) => state !== 'active' && (hostVeth?.name === ifname || hostVeth?.mac === address),
    );
    if (!isKnown) world.violate('A11', `${name} makes ${textOf(ifname)}, and its disk knows of no lease`);
  },
  change: (plural, { object }) => {
    if (plural !== 'nodeeniconfigs' || !world.writer.startsWith('agent-')) return;
    const whole = world.machines.find(({ name }) => name === object.metadata.name)?.whole;
    if (whole === undefined) return;
    const used = new Set(whole.addresses);
    for (const { ip } of necFacts(object).spec.releasableIPs ?? []) {
      if (used.has(ip)) world.violate('A11', `${ip} is offered while a lease has it`);
      // A boot may have emptied the disk of a life that is over.
      if (whole.life?.name === world.writer && whole.host.journal.content?.offers.has(ip) !== true)
        world.violate('A11', `${ip} is offered, and not on disk`);
    }
  },
  step: () => {
    for (const { name, whole } of world.machines) {
      if (whole?.isServing !== true) continue;
      for (const { state, containerId } of whole.leases)
        if (state === 'pending' && !whole.runtime.adding.has(containerId))
          world.violate('A12', `${name} serves with a pending lease of ${containerId}`);
    }
  },
});
