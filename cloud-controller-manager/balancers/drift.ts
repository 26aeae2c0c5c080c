import type { ListenerSettings } from '../../cloud/listeners.ts';
import type { RuleSettings } from '../../cloud/rules.ts';

/** What another client changed: the policies for source ranges, an attribute, a setting of a listener or rule, one of these, a redirect, a target or its weight. */
type DriftField =
  | 'loadBalancer'
  | 'sourceRanges'
  | 'rule'
  | 'certificate'
  | 'name'
  | 'redirect'
  | 'listener'
  | 'target'
  | 'weight'
  | Attribute
  | keyof ListenerSettings
  | keyof RuleSettings;

/** A change that another client made. */
export type Drift = {
  readonly field: DriftField;
  /** `TCP/80`, `HTTP/80 www.example.com/`, or one of these and a target as ` 10.0.0.1:30080`; '' of the load balancer itself. */
  readonly of: string;
  /** For people. Absent: it was or is not there. */
  readonly was?: string;
  readonly is?: string;
};

type Attribute = 'passesToTarget' | 'isDeleteProtected' | 'bandwidthMbps' | 'securityGroupIds';
/** The attributes of the load balancer itself that are kept. */
export const ATTRIBUTES: readonly Attribute[] = [
  'passesToTarget',
  'isDeleteProtected',
  'bandwidthMbps',
  'securityGroupIds',
];

/** Renders a drift for people: `scheduler of TCP/80 is "LEAST_CONN" and was "WRR"`. */
export function renderDrift({ field, of, was, is }: Drift): string {
  const what = of === '' ? field : `${field} of ${of}`;
  if (field === 'listener' || field === 'rule' || field === 'target') {
    const name = `the ${field} ${of}`;
    return was === undefined ? `${name} was added` : `${name} was removed`;
  }
  return `${what} is ${is} and was ${was}`;
}

/** Divides drifts by listener and rule, those of its targets among them: a load balancer has thousands of rules. */
export function driftsByPlace(drifts: readonly Drift[]): (place: string) => readonly Drift[] {
  const byPlace = new Map<string, Drift[]>();
  for (const drift of drifts)
    for (const place of [drift.of, drift.of.slice(0, Math.max(0, drift.of.lastIndexOf(' ')))]) {
      const its = byPlace.get(place);
      if (its === undefined) byPlace.set(place, [drift]);
      else its.push(drift);
    }
  return (place) => byPlace.get(place) ?? [];
}
