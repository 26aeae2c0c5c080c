import { ApiError } from './api-error.ts';

/** The groups, when all of them exist; `known` undefined: any do. @throws ApiError ResourceNotFound */
export function knownGroups(known: readonly string[] | undefined, groups: readonly string[]): readonly string[] {
  const unknown = known === undefined ? undefined : groups.find((group) => !known.includes(group));
  if (unknown !== undefined) throw new ApiError('ResourceNotFound', `The resource ${unknown} does not exist.`);
  return groups;
}
