import type { ElementId } from '../catalogue/element-id.ts';
import { bySeverity, type Finding } from '../catalogue/finding.ts';
import type { Hop } from './explanation.ts';

/** The fields that every hop has. */
type HopFields = {
  readonly kind: Hop['kind'];
  readonly element: ElementId;
  readonly title: string;
  readonly details?: readonly (string | undefined)[];
};

/** Builds a hop. Its finding decides the verdict: an error means broken, any other finding a warning, none ok. */
export function hopOf(fields: HopFields, found?: Finding): Hop {
  const { kind, element, title } = fields;
  const details = (fields.details ?? []).filter((line) => line !== undefined);
  if (found === undefined) return { kind, element, title, details, verdict: 'ok' };
  const verdict = found.severity === 'error' ? 'broken' : 'warning';
  return { kind, element, title, details, verdict, finding: found };
}

/** Builds a hop that could not be read. */
export function unknownHop(fields: HopFields, why: string, next: string): Hop {
  const { kind, element, title, details = [] } = fields;
  const lines = [...details.filter((line) => line !== undefined), `not known: ${why}`, `next: ${next}`];
  return { kind, element, title, details: lines, verdict: 'unknown' };
}

/** Returns the most severe finding; of equal ones the first. */
export function mostSevere(...found: readonly (Finding | undefined)[]): Finding | undefined {
  const present = found.filter((each) => each !== undefined);
  return present.toSorted(bySeverity)[0];
}
