import { boolean, integer, optional, record, required } from '../../../runtime/decode.ts';
import { classifyError } from '../../classify-error.ts';
import type { FoundTarget, HealthState, Target, TargetHealth } from '../../targets.ts';
import { decodeAnswer, listUpTo, SHORT_NAME, SHORT_TEXT, timeOf } from './fields.ts';

/** More targets of one load balancer, and of those of one answer, than any quota gives. */
const MAX_TARGETS = 100_000;
const MAX_LISTENERS = 10_000;
const MAX_RULES = 10_000;
const MAX_ADDRESSES = 1_000;

/** 0 is no port: targets of a whole range have it. */
const PORT = integer(0, 65_535);
const WEIGHT = integer(0, 1_000);

const BACKEND = record(
  {
    Type: optional(SHORT_TEXT),
    InstanceId: optional(SHORT_TEXT),
    EniId: optional(SHORT_TEXT),
    Port: required(PORT),
    Weight: optional(WEIGHT),
    PrivateIpAddresses: required(listUpTo(MAX_ADDRESSES, SHORT_NAME)),
    RegisteredTime: optional(SHORT_TEXT),
    Tag: optional(SHORT_TEXT),
  },
  'ignore',
);
const RULE_TARGETS = record(
  { LocationId: required(SHORT_NAME), Targets: optional(listUpTo(MAX_TARGETS, BACKEND)) },
  'ignore',
);
const LISTENER_TARGETS = record(
  {
    ListenerId: required(SHORT_NAME),
    Targets: optional(listUpTo(MAX_TARGETS, BACKEND)),
    Rules: optional(listUpTo(MAX_RULES, RULE_TARGETS)),
  },
  'ignore',
);
const TARGETS = record({ Listeners: optional(listUpTo(MAX_LISTENERS, LISTENER_TARGETS)) }, 'ignore');

/** The weight that the cloud gives a target for which none was named. */
const DEFAULT_WEIGHT = 10;

/** Kind of a target that is an instance by its primary address. */
const INSTANCE = 'CVM';

/**
 * Decodes the answer of DescribeTargets about these listeners; a target with several addresses is several.
 * @throws CloudError BAD_ANSWER also when a listener is missing: that it has no targets would be a wrong conclusion
 */
export function decodeTargets(value: unknown, listenerIds: readonly string[]): readonly Target[] {
  const { Listeners = [] } = decodeAnswer(TARGETS, value, 'DescribeTargets');
  const found = Listeners.map(({ ListenerId }) => ListenerId);
  requireAll('DescribeTargets', listenerIds, found);
  return Listeners.flatMap(({ ListenerId: listenerId, Targets = [], Rules = [] }) =>
    [
      { place: { listenerId }, Targets },
      ...Rules.map((rule) => ({ place: { listenerId, ruleId: rule.LocationId }, Targets: rule.Targets ?? [] })),
    ].flatMap(({ place, Targets: ofPlace }) =>
      ofPlace.flatMap((wire) => wire.PrivateIpAddresses.map((ip) => targetOf(place, ip, wire))),
    ),
  );
}

type Place = Pick<Target, 'listenerId' | 'ruleId'>;

function targetOf(place: Place, ip: string, wire: NonNullable<ReturnType<typeof BACKEND>>): Target {
  const { InstanceId: instanceId = '', EniId: eniId = '', Type: kind = '' } = wire;
  return {
    ...place,
    ip,
    port: wire.Port,
    // One that is an address has the instance of its ENI here.
    ...(kind === INSTANCE && instanceId !== '' ? { instanceId } : {}),
    ...(eniId === '' ? {} : { eniId }),
    weight: wire.Weight ?? DEFAULT_WEIGHT,
    kind,
    tag: wire.Tag ?? '',
    registeredAtMs: timeOf(wire.RegisteredTime),
  };
}

function requireAll(action: string, wanted: readonly string[], found: readonly string[]): void {
  const missing = wanted.filter((id) => !found.includes(id));
  if (missing.length === 0) return;
  throw classifyError({ code: 'BAD_ANSWER', action, text: `the answer lacks ${missing.join(', ')}` });
}

const BATCH = record(
  { FailListenerIdSet: optional(listUpTo(MAX_LISTENERS, SHORT_TEXT)), Message: optional(SHORT_TEXT) },
  'ignore',
);

/** Decodes the answer of a batch of targets: the listeners it was refused for. @throws CloudError BAD_ANSWER */
export function decodeBatch(
  value: unknown,
  action: string,
): { readonly refusedIds: readonly string[]; readonly message: string } {
  const { FailListenerIdSet = [], Message = '' } = decodeAnswer(BATCH, value, action);
  return { refusedIds: FailListenerIdSet.filter((id) => id !== ''), message: Message };
}

const HEALTH = record(
  {
    IP: required(SHORT_NAME),
    Port: required(PORT),
    HealthStatus: optional(boolean),
    HealthStatusDetail: optional(SHORT_TEXT),
    Weight: optional(WEIGHT),
  },
  'ignore',
);
const RULE = record({ LocationId: optional(SHORT_TEXT), Targets: optional(listUpTo(MAX_TARGETS, HEALTH)) }, 'ignore');
const LISTENER_HEALTH = record(
  { ListenerId: required(SHORT_NAME), Rules: optional(listUpTo(MAX_RULES, RULE)) },
  'ignore',
);
const HEALTHS = record(
  {
    LoadBalancers: optional(
      listUpTo(
        MAX_LISTENERS,
        record(
          { LoadBalancerId: required(SHORT_NAME), Listeners: optional(listUpTo(MAX_LISTENERS, LISTENER_HEALTH)) },
          'ignore',
        ),
      ),
    ),
  },
  'ignore',
);

const STATES: Readonly<Record<string, HealthState>> = {
  Alive: 'healthy',
  Dead: 'unhealthy',
  Unknown: 'unknown',
  Close: 'unchecked',
};

/** Decodes the answer of DescribeTargetHealth. @throws CloudError BAD_ANSWER also when a load balancer is missing */
export function decodeTargetHealth(value: unknown, loadBalancerIds: readonly string[]): readonly TargetHealth[] {
  const { LoadBalancers = [] } = decodeAnswer(HEALTHS, value, 'DescribeTargetHealth');
  const found = LoadBalancers.map(({ LoadBalancerId }) => LoadBalancerId);
  requireAll('DescribeTargetHealth', loadBalancerIds, found);
  return LoadBalancers.flatMap(({ LoadBalancerId: loadBalancerId, Listeners = [] }) =>
    Listeners.flatMap(({ ListenerId: listenerId, Rules = [] }) =>
      Rules.flatMap(({ LocationId = '', Targets = [] }) =>
        Targets.map((wire) => ({
          loadBalancerId,
          listenerId,
          ...ruleIdOf(LocationId),
          ip: wire.IP,
          port: wire.Port,
          state: stateOf(wire.HealthStatus, wire.HealthStatusDetail),
          ...(wire.Weight === undefined ? {} : { weight: wire.Weight }),
        })),
      ),
    ),
  );
}

/** A word that is not known leaves what the flag says; a flag that is false includes what was not checked yet. */
function stateOf(isHealthy: boolean | undefined, detail = ''): HealthState {
  const known = Object.hasOwn(STATES, detail) ? STATES[detail] : undefined;
  return known ?? (isHealthy === true ? 'healthy' : 'unknown');
}

const FOUND_TARGET = record(
  { PrivateIp: required(SHORT_NAME), Port: required(PORT), Weight: optional(WEIGHT) },
  'ignore',
);
const FOUND_RULE = record(
  { LocationId: optional(SHORT_TEXT), Targets: optional(listUpTo(MAX_TARGETS, FOUND_TARGET)) },
  'ignore',
);
const FOUND_LISTENER = record(
  {
    ListenerId: required(SHORT_NAME),
    Rules: optional(listUpTo(MAX_RULES, FOUND_RULE)),
    Targets: optional(listUpTo(MAX_TARGETS, FOUND_TARGET)),
  },
  'ignore',
);
const FOUND = record(
  {
    LoadBalancers: optional(
      listUpTo(
        MAX_LISTENERS,
        record(
          { LoadBalancerId: required(SHORT_NAME), Listeners: optional(listUpTo(MAX_LISTENERS, FOUND_LISTENER)) },
          'ignore',
        ),
      ),
    ),
  },
  'ignore',
);

/** Decodes the answer of DescribeLBListeners. @throws CloudError BAD_ANSWER */
export function decodeFoundTargets(value: unknown): readonly FoundTarget[] {
  const { LoadBalancers = [] } = decodeAnswer(FOUND, value, 'DescribeLBListeners');
  return LoadBalancers.flatMap(({ LoadBalancerId: loadBalancerId, Listeners = [] }) =>
    Listeners.flatMap(({ ListenerId: listenerId, Rules = [], Targets = [] }) =>
      [{ Targets }, ...Rules].flatMap(({ LocationId = '', Targets: ofPlace = [] }: FoundPlace) =>
        ofPlace.map((wire) => ({
          loadBalancerId,
          listenerId,
          ...ruleIdOf(LocationId),
          ip: wire.PrivateIp,
          port: wire.Port,
          weight: wire.Weight ?? DEFAULT_WEIGHT,
        })),
      ),
    ),
  );
}

type FoundPlace = NonNullable<ReturnType<typeof FOUND_RULE>>;

/** A listener without rules is written as if it had one, without an id. */
function ruleIdOf(ruleId: string): { readonly ruleId?: string } {
  return ruleId === '' ? {} : { ruleId };
}
