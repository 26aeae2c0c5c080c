/** What a check found so far, and how often it said the same in a row. */
type HealthCount = { readonly isAlive: boolean | undefined; readonly last: boolean; readonly times: number };

/** Before the first check. */
export const NO_CHECKS: HealthCount = { isAlive: undefined, last: false, times: 0 };

/** Counts one more check: a target changes its state when as many in a row as it takes said the same. */
export function countCheck(
  before: HealthCount,
  isGood: boolean,
  { HealthNum, UnHealthNum }: { readonly HealthNum: number; readonly UnHealthNum: number },
): HealthCount {
  const times = before.times > 0 && before.last === isGood ? before.times + 1 : 1;
  const isEnough = times >= (isGood ? HealthNum : UnHealthNum);
  return { isAlive: isEnough ? isGood : before.isAlive, last: isGood, times };
}
