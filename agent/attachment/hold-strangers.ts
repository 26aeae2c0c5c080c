import type { UseCaseDeps } from '../state/ports.ts';

/**
 * Holds back the addresses of the pool that another program has on this node, and frees those that it has no more. They
 * count as used: ipamd brings others, and none of them is given back, as a Pod may live with it.
 * @throws NetlinkError
 */
export function holdStrangers({ state, strangers, log, demandChanged }: UseCaseDeps): void {
  // With this role all Pods are another program's.
  if (state.role === 'uplinks') return;
  const before = state.pool.state.strangers ?? new Set();
  const idle = [...state.pool.state.addresses.values()].filter((address) => address.state !== 'leased');
  const found = strangers.find(idle.map(({ ip }) => ip));
  const [added, over] = [[...found].filter((ip) => !before.has(ip)), [...before].filter((ip) => !found.has(ip))];
  if (added.length === 0 && over.length === 0) return;
  if (added.length > 0) log.warn('addresses that another program has on this node are given to no Pod', { ips: added });
  if (over.length > 0) log.info('addresses that no other program has any more are free', { ips: over });
  state.pool.setStrangers(found);
  // Packets to them were refused, as to addresses without a Pod.
  state.letGo(added);
  state.changed.notify();
  demandChanged();
}
