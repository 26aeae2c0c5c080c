import { UserError } from '../../../runtime/user-error.ts';
import type { Check } from './check.ts';
import type { Selection } from './evaluate-checks.ts';

/**
 * Selects checks by the ids of checks and findings. A finding's id selects the checks that can return it, and limits
 * them to that finding.
 * @throws UserError USAGE with every unknown id
 */
export function decideSelection(checks: readonly Check[], only: readonly string[], skip: readonly string[]): Selection {
  const onlyIds = only.flatMap(split);
  const skipIds = skip.flatMap(split);
  const known = new Set(checks.flatMap(({ id, finds }) => [id, ...finds]));
  const unknownIds = [...onlyIds, ...skipIds].filter((id) => !known.has(id));
  if (unknownIds.length > 0) {
    const message = `there is no check or finding called ${unknownIds.map((id) => JSON.stringify(id)).join(', ')}`;
    throw new UserError('USAGE', message, `checks: ${checks.map(({ id }) => id).join(', ')}`);
  }
  const isNamed = ({ id, finds }: Check) => onlyIds.includes(id) || finds.some((found) => onlyIds.includes(found));
  const named = onlyIds.length === 0 ? checks : checks.filter(isNamed);
  const wholes = named.filter(({ id }) => onlyIds.includes(id));
  const remaining = named.filter(({ id }) => !skipIds.includes(id));
  return {
    checks: remaining,
    isSelected: ({ id }) =>
      !skipIds.includes(id) &&
      (onlyIds.length === 0 || onlyIds.includes(id) || wholes.some(({ finds }) => finds.some((found) => found === id))),
  };
}

function split(text: string): readonly string[] {
  return text.split(',').flatMap((id) => (id.trim() === '' ? [] : [id.trim()]));
}
