import type { Listener } from '../../cloud/listeners.ts';
import type { Rule } from '../../cloud/rules.ts';
import type { TargetRef } from '../../cloud/targets.ts';

/** What has targets: a listener of layer 4, or a rule of a listener of layer 7. */
export type TargetPlace = ListenerKey | RuleKey;

/** Names a listener of layer 4 of one load balancer: `TCP/80`. */
export type ListenerKey = `${'TCP' | 'UDP'}/${number}`;

/** Names a listener of layer 7 of one load balancer: `HTTP/80`. */
export type RuleListenerKey = `${'HTTP' | 'HTTPS'}/${number}`;

/** Names a rule of one load balancer: `HTTP/80 www.example.com/a`, and `HTTP/80 /a` for the address itself. */
export type RuleKey = `${RuleListenerKey} ${string}`;

type Ported = Pick<Listener, 'protocol' | 'port' | 'endPort'>;

/** Returns the key of a listener of layer 4; undefined for any other. */
export function listenerKeyOf({ protocol, port, endPort }: Ported): ListenerKey | undefined {
  const isOne = (protocol === 'TCP' || protocol === 'UDP') && (endPort === undefined || endPort === port);
  return isOne ? `${protocol}/${port}` : undefined;
}

/** Returns the key of a listener of layer 7; undefined for any other. */
export function ruleListenerKeyOf({ protocol, port }: Pick<Ported, 'protocol' | 'port'>): RuleListenerKey | undefined {
  return protocol === 'HTTP' || protocol === 'HTTPS' ? `${protocol}/${port}` : undefined;
}

/** Returns the key of a rule. A domain has no `/`, and a url begins with `/`, `=` or `~`: no two rules have one key. */
export function ruleKeyOf(listener: RuleListenerKey, { domain, url }: Pick<Rule, 'domain' | 'url'>): RuleKey {
  return `${listener} ${domain}${url}`;
}

/** Names a listener, or a rule of it, as targets do. */
export function placeIdOf({ listenerId, ruleId = '' }: Pick<TargetRef, 'listenerId' | 'ruleId'>): string {
  return `${listenerId} ${ruleId}`;
}

/** Names a target of a load balancer. */
export function targetIdOf(target: Pick<TargetRef, 'listenerId' | 'ruleId' | 'ip' | 'port'>): string {
  return `${placeIdOf(target)} ${target.ip}:${target.port}`;
}

/** What has targets of listeners with a name, by `placeIdOf` it. */
export function placesOf(listeners: readonly Listener[], name: string): ReadonlyMap<string, TargetPlace> {
  const places = new Map<string, TargetPlace>();
  for (const listener of listeners) {
    if (listener.name !== name) continue;
    const { listenerId, rules = [] } = listener;
    const key = listenerKeyOf(listener);
    if (key !== undefined) places.set(placeIdOf({ listenerId }), key);
    const ruleListener = ruleListenerKeyOf(listener);
    if (ruleListener === undefined) continue;
    for (const rule of rules) places.set(placeIdOf({ listenerId, ruleId: rule.ruleId }), ruleKeyOf(ruleListener, rule));
  }
  return places;
}
