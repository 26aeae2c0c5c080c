import type { HealthCheck } from '../health-check.ts';

/** The value of CheckPort for the port of the target. */
const PORT_OF_TARGET = -1;

/** Converts a health check of a listener or rule to the API's fields; what is absent is left out. */
export function checkRequest(check: HealthCheck) {
  const { isOn, kind, intervalSeconds, timeoutSeconds, checkPort, source, exchange } = check;
  const { healthyThreshold, unhealthyThreshold } = check;
  return {
    ...(isOn === undefined ? {} : { HealthSwitch: isOn ? 1 : 0 }),
    ...(kind === undefined ? {} : { CheckType: kind }),
    ...(intervalSeconds === undefined ? {} : { IntervalTime: intervalSeconds }),
    ...(timeoutSeconds === undefined ? {} : { TimeOut: timeoutSeconds }),
    ...(healthyThreshold === undefined ? {} : { HealthNum: healthyThreshold }),
    ...(unhealthyThreshold === undefined ? {} : { UnHealthNum: unhealthyThreshold }),
    ...(checkPort === undefined ? {} : { CheckPort: checkPort === 'target' ? PORT_OF_TARGET : checkPort }),
    ...(source === undefined ? {} : { SourceIpType: source === 'vip' ? 0 : 1 }),
    ...httpRequest(check.http),
    ...(exchange === undefined
      ? {}
      : { ContextType: exchange.format, SendContext: exchange.send, RecvContext: exchange.receive }),
  };
}

function httpRequest({ path, domain, method, version, codes }: NonNullable<HealthCheck['http']> = {}) {
  return {
    ...(path === undefined ? {} : { HttpCheckPath: path }),
    ...(domain === undefined ? {} : { HttpCheckDomain: domain }),
    ...(method === undefined ? {} : { HttpCheckMethod: method }),
    ...(version === undefined ? {} : { HttpVersion: version }),
    ...(codes === undefined ? {} : { HttpCode: codes }),
  };
}
