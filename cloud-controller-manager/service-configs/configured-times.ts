import type { HealthCheck } from '../../cloud/health-check.ts';

/** What checks of listeners and of rules have of times and counts. */
type ConfiguredTimes = {
  readonly intervalTime?: number;
  readonly timeout?: number;
  readonly healthNum?: number;
  readonly unHealthNum?: number;
};

/** The cloud's interval of checks, seconds. */
const INTERVAL_SECONDS = 5;

/** Converts the times of a configured check; one that the cloud refuses is left out, as those that are absent are. */
export function checkTimesOf(config: ConfiguredTimes): HealthCheck {
  const { intervalTime, timeout, healthNum, unHealthNum } = config;
  return {
    ...(intervalTime === undefined ? {} : { intervalSeconds: intervalTime }),
    ...(timeout === undefined || isTooLong(config) ? {} : { timeoutSeconds: timeout }),
    ...(healthNum === undefined ? {} : { healthyThreshold: healthNum }),
    ...(unHealthNum === undefined ? {} : { unhealthyThreshold: unHealthNum }),
  };
}

/** Reports whether the timeout is not below the interval: the cloud refuses it. */
export function isTooLong({ timeout, intervalTime = INTERVAL_SECONDS }: ConfiguredTimes): boolean {
  return timeout !== undefined && timeout >= intervalTime;
}

/** The product's default. */
const SECONDS = 30;

/** Returns for how many seconds a client keeps its target, 0 for not at all; undefined where the configuration does not say it. */
export function sessionSecondsOf(
  session: { readonly enable?: boolean; readonly sessionExpireTime?: number } | undefined,
): number | undefined {
  if (session?.enable === undefined) return undefined;
  return session.enable ? (session.sessionExpireTime ?? SECONDS) : 0;
}
