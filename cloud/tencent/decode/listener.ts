import {
  boolean,
  type Decoder,
  Faults,
  integer,
  optional,
  record,
  renderFault,
  required,
} from '../../../runtime/decode.ts';
import { classifyError } from '../../classify-error.ts';
import type { Listener } from '../../listeners.ts';
import { CERTIFICATE, certificateOf } from './certificate-output.ts';
import { COUNT, decodeAnswer, listUpTo, SHORT_NAME, SHORT_TEXT, timeOf } from './fields.ts';
import { CHECK, healthCheckOf } from './health-check.ts';
import { RULE, ruleOf } from './rule.ts';

/** More listeners than any quota: 2 protocols of 65,535 ports. */
const MAX_LISTENERS = 131_070;
/** More rules of one listener than any quota gives. */
const MAX_RULES = 10_000;

const PORT = integer(0, 65_535);
const IDENTITY_FIELDS = {
  ListenerId: required(SHORT_NAME),
  ListenerName: optional(SHORT_TEXT),
  Protocol: required(SHORT_NAME),
  Port: required(PORT),
  EndPort: optional(PORT),
};
const IDENTITY = record(IDENTITY_FIELDS, 'ignore');
const LISTENER = record(
  {
    ...IDENTITY_FIELDS,
    HealthCheck: optional(CHECK),
    Scheduler: optional(SHORT_TEXT),
    SessionExpireTime: optional(COUNT),
    IdleConnectTimeout: optional(COUNT),
    DeregisterTargetRst: optional(boolean),
    Certificate: optional(CERTIFICATE),
    SniSwitch: optional(COUNT),
    Rules: optional(listUpTo(MAX_RULES, RULE)),
    CreateTime: optional(SHORT_TEXT),
  },
  'ignore',
);
/** A listener of another client may have what this program does not know: the others are read all the same. */
const LISTENER_OR_IDENTITY: Decoder<Listener> = (value, path, faults) => {
  const own = new Faults();
  const whole = LISTENER(value, path, own);
  if (whole !== undefined && own.count === 0) return listenerOf(whole);
  const identity = IDENTITY(value, path, faults);
  const [first] = own.list;
  if (identity === undefined || first === undefined) return undefined;
  return { ...listenerOf(identity), unread: renderFault(first) };
};
const LISTENERS = record(
  { Listeners: optional(listUpTo(MAX_LISTENERS, LISTENER_OR_IDENTITY)), TotalCount: required(COUNT) },
  'ignore',
);

/** Decodes the answer of DescribeListeners. @throws CloudError BAD_ANSWER also when it has not as many as its total */
export function decodeListeners(value: unknown): readonly Listener[] {
  const { Listeners = [], TotalCount } = decodeAnswer(LISTENERS, value, 'DescribeListeners');
  if (Listeners.length === TotalCount) return Listeners;
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
  const { Protocol: protocol } = wire;
  const hasRules = protocol === 'HTTP' || protocol === 'HTTPS';
  const certificate = certificateOf(wire.Certificate);
  return {
    listenerId: wire.ListenerId,
    name: wire.ListenerName ?? '',
    protocol,
    port: wire.Port,
    ...(EndPort === 0 ? {} : { endPort: EndPort }),
    ...(Scheduler === undefined ? {} : { scheduler: Scheduler }),
    ...(SessionExpireTime === undefined ? {} : { sessionSeconds: SessionExpireTime }),
    ...(IdleConnectTimeout === undefined ? {} : { idleSeconds: IdleConnectTimeout }),
    ...(DeregisterTargetRst === undefined ? {} : { resetsOnDeregister: DeregisterTargetRst }),
    ...(wire.HealthCheck === undefined ? {} : { healthCheck: healthCheckOf(wire.HealthCheck) }),
    ...(certificate === undefined ? {} : { certificate }),
    ...(protocol === 'HTTPS' && wire.SniSwitch !== undefined ? { isSni: wire.SniSwitch === 1 } : {}),
    ...(hasRules ? { rules: (wire.Rules ?? []).map(ruleOf) } : {}),
    createdAtMs: timeOf(wire.CreateTime),
  };
}
