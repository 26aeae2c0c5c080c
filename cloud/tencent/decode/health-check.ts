import { integer, optional, record } from '../../../runtime/decode.ts';
import type { HealthCheck } from '../../health-check.ts';
import { COUNT, SHORT_TEXT } from './fields.ts';

/** The health check of a listener or rule, as the API writes it. */
export const CHECK = record(
  {
    HealthSwitch: optional(COUNT),
    TimeOut: optional(COUNT),
    IntervalTime: optional(COUNT),
    HealthNum: optional(COUNT),
    UnHealthNum: optional(COUNT),
    HttpCode: optional(COUNT),
    HttpCheckPath: optional(SHORT_TEXT),
    HttpCheckDomain: optional(SHORT_TEXT),
    HttpCheckMethod: optional(SHORT_TEXT),
    HttpVersion: optional(SHORT_TEXT),
    CheckPort: optional(integer(-1, 65_535)),
    ContextType: optional(SHORT_TEXT),
    SendContext: optional(SHORT_TEXT),
    RecvContext: optional(SHORT_TEXT),
    CheckType: optional(SHORT_TEXT),
    SourceIpType: optional(COUNT),
  },
  'ignore',
);

type WireCheck = NonNullable<ReturnType<typeof CHECK>>;

/** Converts a health check of the API; texts that are empty are not set. */
export function healthCheckOf(wire: WireCheck): HealthCheck {
  const { HealthSwitch, TimeOut, IntervalTime, HealthNum, UnHealthNum, CheckType = '', CheckPort, SourceIpType } = wire;
  const http = httpCheckOf(wire);
  const exchange = exchangeOf(wire);
  return {
    ...(HealthSwitch === undefined ? {} : { isOn: HealthSwitch === 1 }),
    ...(CheckType === '' ? {} : { kind: CheckType }),
    ...(IntervalTime === undefined ? {} : { intervalSeconds: IntervalTime }),
    ...(TimeOut === undefined ? {} : { timeoutSeconds: TimeOut }),
    ...(HealthNum === undefined ? {} : { healthyThreshold: HealthNum }),
    ...(UnHealthNum === undefined ? {} : { unhealthyThreshold: UnHealthNum }),
    ...(CheckPort === undefined ? {} : { checkPort: CheckPort > 0 ? CheckPort : ('target' as const) }),
    ...(SourceIpType === undefined
      ? {}
      : { source: SourceIpType === 1 ? ('shared-range' as const) : ('vip' as const) }),
    ...(Object.keys(http).length === 0 ? {} : { http }),
    ...(exchange === undefined ? {} : { exchange }),
  };
}

function httpCheckOf(wire: WireCheck): NonNullable<HealthCheck['http']> {
  const {
    HttpCheckPath: path = '',
    HttpCheckDomain: domain = '',
    HttpCheckMethod: method,
    HttpVersion: version,
  } = wire;
  return {
    ...(path === '' ? {} : { path }),
    ...(domain === '' ? {} : { domain }),
    ...(method === 'HEAD' || method === 'GET' ? { method } : {}),
    ...(version === 'HTTP/1.0' || version === 'HTTP/1.1' ? { version } : {}),
    ...(wire.HttpCode === undefined ? {} : { codes: wire.HttpCode }),
  };
}

function exchangeOf({ ContextType: format, SendContext, RecvContext }: WireCheck): HealthCheck['exchange'] {
  if (format !== 'HEX' && format !== 'TEXT') return undefined;
  return { format, send: SendContext ?? '', receive: RecvContext ?? '' };
}
