import { boolean, integer, optional, record, required } from '../../../runtime/decode.ts';
import { classifyError } from '../../classify-error.ts';
import type { HealthCheck, Listener } from '../../listeners.ts';
import { COUNT, decodeAnswer, listUpTo, SHORT_NAME, SHORT_TEXT, timeOf } from './fields.ts';

/** More listeners than any quota: 2 protocols of 65,535 ports. */
const MAX_LISTENERS = 131_070;

const PORT = integer(0, 65_535);
const CHECK = record(
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
const LISTENER = record(
  {
    ListenerId: required(SHORT_NAME),
    ListenerName: optional(SHORT_TEXT),
    Protocol: required(SHORT_NAME),
    Port: required(PORT),
    EndPort: optional(PORT),
    HealthCheck: optional(CHECK),
    Scheduler: optional(SHORT_TEXT),
    SessionExpireTime: optional(COUNT),
    IdleConnectTimeout: optional(COUNT),
    DeregisterTargetRst: optional(boolean),
    CreateTime: optional(SHORT_TEXT),
  },
  'ignore',
);
const LISTENERS = record(
  { Listeners: optional(listUpTo(MAX_LISTENERS, LISTENER)), TotalCount: required(COUNT) },
  'ignore',
);

/** Decodes the answer of DescribeListeners. @throws CloudError BAD_ANSWER also when it has not as many as its total */
export function decodeListeners(value: unknown): readonly Listener[] {
  const { Listeners = [], TotalCount } = decodeAnswer(LISTENERS, value, 'DescribeListeners');
  if (Listeners.length === TotalCount) return Listeners.map(listenerOf);
  const text = `the answer has ${Listeners.length} of ${TotalCount} listeners`;
  throw classifyError({ code: 'BAD_ANSWER', action: 'DescribeListeners', text });
}

const CREATED = record({ ListenerIds: required(listUpTo(MAX_LISTENERS, SHORT_NAME)) }, 'ignore');

/** Decodes the answer of CreateListener for so many ports. @throws CloudError BAD_ANSWER */
export function decodeCreatedListeners(value: unknown, ports: number): readonly string[] {
  const { ListenerIds } = decodeAnswer(CREATED, value, 'CreateListener');
  if (ListenerIds.length === ports) return ListenerIds;
  const text = `the answer has ${ListenerIds.length} ids for ${ports} ports`;
  throw classifyError({ code: 'BAD_ANSWER', action: 'CreateListener', text });
}

type WireListener = NonNullable<ReturnType<typeof LISTENER>>;

function listenerOf(wire: WireListener): Listener {
  const { Scheduler, SessionExpireTime, IdleConnectTimeout, DeregisterTargetRst, EndPort = 0 } = wire;
  return {
    listenerId: wire.ListenerId,
    name: wire.ListenerName ?? '',
    protocol: wire.Protocol,
    port: wire.Port,
    ...(EndPort === 0 ? {} : { endPort: EndPort }),
    ...(Scheduler === undefined ? {} : { scheduler: Scheduler }),
    ...(SessionExpireTime === undefined ? {} : { sessionSeconds: SessionExpireTime }),
    ...(IdleConnectTimeout === undefined ? {} : { idleSeconds: IdleConnectTimeout }),
    ...(DeregisterTargetRst === undefined ? {} : { resetsOnDeregister: DeregisterTargetRst }),
    ...(wire.HealthCheck === undefined ? {} : { healthCheck: healthCheckOf(wire.HealthCheck) }),
    createdAtMs: timeOf(wire.CreateTime),
  };
}

type WireCheck = NonNullable<ReturnType<typeof CHECK>>;

/** Texts that are empty are not set. */
function healthCheckOf(wire: WireCheck): HealthCheck {
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
