import type { IngressRule } from '../../../cloud/cloud.ts';
import { isInCidr, lastOf, parseCidr } from '../../../crd/ip-text.ts';

/** A security group with its rules for what comes in. */
export type GroupRules = { readonly groupId: string; readonly rules: readonly IngressRule[] };

/** What is to come in, from all addresses of a network. */
export type Arrival = { readonly cidr: string; readonly protocol: 'TCP' | 'UDP'; readonly port: number };

/**
 * Whether an arrival is admitted. `unknown`: it depends on a group or template whose addresses are not read. `dropped`: by the
 * rule `at` of a group, counted from 0, or because no rule of any fits.
 */
type IngressAnswer =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'dropped'; readonly groupId: string; readonly at?: number };

/** What a load balancer's probes have as their source. */
export const PROBE_RANGE = '100.64.0.0/10';

/** Asks security groups, in the order of precedence. No group at all admits everything. */
export function evaluateIngress(groups: readonly GroupRules[], arrival: Arrival): IngressAnswer {
  const [first] = groups;
  if (first === undefined) return { kind: 'admitted' };
  let isUncertain = false;
  for (const { groupId, rules } of groups) {
    for (const [at, rule] of rules.entries()) {
      const service = fitsService(rule, arrival);
      const source = rule.cidr === undefined ? 'unknown' : compareSource(rule.cidr, arrival.cidr);
      if (service === 'no' || source === 'none') continue;
      if (service === 'unknown' || source === 'unknown') isUncertain = true;
      // What a rule admits of a network leaves the rest to those behind it.
      else if (source === 'part' && rule.isAccepted) continue;
      else if (isUncertain) return { kind: 'unknown' };
      else return rule.isAccepted ? { kind: 'admitted' } : { kind: 'dropped', groupId, at };
    }
  }
  return isUncertain ? { kind: 'unknown' } : { kind: 'dropped', groupId: first.groupId };
}

/** Reports whether security groups may admit anybody but probes to a port. */
export function admitsSomebody(groups: readonly GroupRules[], service: Pick<Arrival, 'protocol' | 'port'>): boolean {
  if (groups.length === 0) return true;
  for (const rule of groups.flatMap(({ rules }) => rules)) {
    if (fitsService(rule, service) === 'no') continue;
    if (!rule.isAccepted && rule.cidr === '0.0.0.0/0' && fitsService(rule, service) === 'yes') return false;
    if (rule.isAccepted && (rule.cidr === undefined || compareSource(PROBE_RANGE, rule.cidr) !== 'all')) return true;
  }
  return false;
}

function fitsService(
  { protocol, ports }: IngressRule,
  arrival: Pick<Arrival, 'protocol' | 'port'>,
): 'yes' | 'no' | 'unknown' {
  if (protocol === undefined) return 'unknown';
  if (protocol !== 'ALL' && protocol !== arrival.protocol) return 'no';
  const fits = ports?.some(([first, last]) => first <= arrival.port && arrival.port <= last) ?? true;
  return fits ? 'yes' : 'no';
}

/** How much of the network `source` is in the network of a rule. */
function compareSource(ofRule: string, source: string): 'all' | 'part' | 'none' | 'unknown' {
  const [rule, wanted] = [parseCidr(ofRule), parseCidr(source)];
  if (rule === undefined || wanted === undefined || rule.family !== wanted.family) return 'unknown';
  const [first, last] = [isInCidr(wanted.address, ofRule), isInCidr(lastOf(wanted), ofRule)];
  if (first && last) return 'all';
  return first || last || isInCidr(rule.address, source) ? 'part' : 'none';
}
