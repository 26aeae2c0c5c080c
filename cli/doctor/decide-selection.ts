import { CliError } from '../cli-error.ts';
import type { Check } from './check.ts';
import type { Selection } from './find-diagnosis.ts';

/**
 * Selects checks by the ids of checks and findings. A finding's id selects the checks that can return it, and limits
 * them to that finding.
 * @throws CliError USAGE with every unknown id
 */
export function decideSelection(checks: readonly Check[], only: readonly string[], skip: readonly string[]): Selection {
  const onlyIds = only.flatMap(split);
  const skipIds = skip.flatMap(split);
  const known = new Set(checks.flatMap(({ id, finds }) => [id, ...finds]));
  const strange = [...onlyIds, ...skipIds].filter((id) => !known.has(id));
  if (strange.length > 0) {
    const message = `there is no check or finding called ${strange.map((id) => JSON.stringify(id)).join(', ')}`;
    throw new CliError('USAGE', message, `checks: ${checks.map(({ id }) => id).join(', ')}`);
  }
  const isNamed = ({ id, finds }: Check) => onlyIds.includes(id) || finds.some((found) => onlyIds.includes(found));
  const named = onlyIds.length === 0 ? checks : checks.filter(isNamed);
  const wholes = named.filter(({ id }) => onlyIds.includes(id));
  const kept = named.filter(({ id }) => !skipIds.includes(id));
  return {
    checks: kept,
    isWanted: ({ id }) =>
      !skipIds.includes(id) &&
      (onlyIds.length === 0 || onlyIds.includes(id) || wholes.some(({ finds }) => finds.some((found) => found === id))),
  };
}

function split(text: string): readonly string[] {
  return text.split(',').flatMap((word) => (word.trim() === '' ? [] : [word.trim()]));
}
