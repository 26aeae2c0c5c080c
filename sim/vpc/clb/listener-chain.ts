import type { ListenerPath } from '../api/model/clb/types.ts';
import { slotsOf, type WeightedTarget } from './slots.ts';

/** The rules, without their chain, that lead a new connection of a listener to one of these targets. */
export function listenerRules(
  { protocol, isSticky }: Pick<ListenerPath, 'protocol' | 'isSticky'>,
  targets: readonly WeightedTarget[],
): readonly string[] {
  const slots = slotsOf(targets);
  if (slots.length === 0) return ['drop'];
  const pick = isSticky ? `jhash ip saddr mod ${slots.length} seed 0x1` : `numgen inc mod ${slots.length}`;
  const places = slots.map(({ ip, port }, slot) => `${slot} : ${ip} . ${port}`);
  return [
    `meta mark set ${pick}`,
    ...ownRules(slots),
    `meta l4proto ${protocol.toLowerCase()} dnat to meta mark map { ${places.join(', ')} }`,
  ];
}

/** A target never gets its own connection: the next slot of another one does. Where there is no other, none does. */
function ownRules(slots: readonly WeightedTarget[]): readonly string[] {
  const ips = new Set(slots.map(({ ip }) => ip));
  if (ips.size === 1) return [`ip saddr ${[...ips].join()} drop`];
  const moves = slots.map(({ ip }, slot) => {
    const behind = [...slots.keys()].map((step) => (slot + step) % slots.length);
    return `${ip} . ${slot} : ${behind.find((other) => slots[other]?.ip !== ip)}`;
  });
  return [`meta mark set ip saddr . meta mark map { ${moves.join(', ')} }`];
}
