import type {
  Backend,
  DescribeLBListenersResponse,
  DescribeTargetsResponse,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import { type DescribeRules, select } from '../filters.ts';
import { writtenTime } from '../limits.ts';
import { Params } from '../params.ts';
import { LISTENER_PROTOCOLS } from './read-listener.ts';
import type { ModelTarget } from './types.ts';

const MOST_LISTENERS = 20;
const MOST_BACKENDS = 20;

type Found = ModelTarget & { readonly ruleId: string };

const FILTERS: DescribeRules<Found> = {
  idField: '',
  mostIds: 0,
  mostFilters: 10,
  mostValues: 100,
  invalidFilter: 'InvalidParameterValue.InvalidFilter',
  fields: {
    'location-id': ({ ruleId }) => [ruleId],
    'private-ip-address': ({ ip }) => [ip],
    tag: ({ tag }) => [tag],
  },
};

/** Answers DescribeTargets: all at once, without pages. */
export function describeTargets({ state, params, asOfMs }: ModelCall): Partial<DescribeTargetsResponse> {
  const balancer = state.clb.balancer(params.text('LoadBalancerId'), asOfMs);
  const ids = params.texts('ListenerIds', MOST_LISTENERS);
  const protocol = params.has('Protocol') ? params.choice('Protocol', LISTENER_PROTOCOLS, 'TCP') : undefined;
  const port = params.has('Port') ? params.integer('Port', 0, 1, 65_535) : undefined;
  const unknown = ids.filter((id) => !balancer.listeners.has(id));
  if (unknown.length > 0) {
    throw new ApiError('InvalidParameter', `some ListenerId ${JSON.stringify(unknown)} not found`);
  }
  const found = [...balancer.listeners.values()].filter(
    (listener) =>
      (ids.length === 0 || ids.includes(listener.listenerId)) &&
      (protocol === undefined || listener.protocol === protocol) &&
      (port === undefined || listener.port === port),
  );
  return {
    Listeners: found.map((listener) => ({
      ListenerId: listener.listenerId,
      Protocol: listener.protocol,
      Port: listener.port,
      EndPort: 0,
      Rules: [...(listener.layer7?.rules.values() ?? [])].map((rule) => ({
        LocationId: rule.ruleId,
        Domain: rule.domain,
        Url: rule.url,
        Targets: filterTargets(rule.targets, params, rule.ruleId).map(wireTarget),
      })),
      Targets: filterTargets(listener.targets, params, '').map(wireTarget),
    })),
  };
}

/** Answers DescribeLBListeners: which load balancers have these addresses as targets. */
export function describeBackendListeners({ state, params, asOfMs }: ModelCall): DescribeLBListenersResponse {
  const backends = params.parts('Backends', MOST_BACKENDS, ['VpcId', 'PrivateIp'], []);
  const wanted = new Set(backends.map((backend) => `${backend.text('VpcId')}/${backend.text('PrivateIp')}`));
  const found = [...state.clb.balancers(asOfMs).values()].map((balancer) => ({
    LoadBalancerId: balancer.loadBalancerId,
    Vip: balancer.domain === '' ? balancer.vip : '',
    Region: '',
    Listeners: [...balancer.listeners.values()]
      .map((listener) => ({
        ListenerId: listener.listenerId,
        Protocol: listener.protocol,
        Port: listener.port,
        EndPort: 0,
        Rules: [...(listener.layer7?.rules.values() ?? [])]
          .map((rule) => ({ LocationId: rule.ruleId, Targets: foundTargets(rule.targets, balancer.vpcId, wanted) }))
          .filter(({ Targets }) => Targets.length > 0),
        Targets: foundTargets(listener.targets, balancer.vpcId, wanted),
      }))
      .filter(({ Rules, Targets }) => Rules.length > 0 || Targets.length > 0),
  }));
  return { LoadBalancers: found.filter(({ Listeners }) => Listeners.length > 0) } as DescribeLBListenersResponse;
}

function foundTargets(targets: ReadonlyMap<string, ModelTarget>, vpcId: string, wanted: ReadonlySet<string>) {
  return [...targets.values()]
    .filter(({ ip }) => wanted.has(`${vpcId}/${ip}`))
    .map(({ type, ip, port, weight }) => ({ Type: type.toLowerCase(), PrivateIp: ip, Port: port, Weight: weight }));
}

function filterTargets(
  targets: ReadonlyMap<string, ModelTarget>,
  params: Params,
  ruleId: string,
): readonly ModelTarget[] {
  const found = new Map([...targets].map(([key, target]): [string, Found] => [key, { ...target, ruleId }]));
  const pages = { Filters: params.raw['Filters'], Limit: 100 };
  const all: ModelTarget[] = [];
  for (let offset = 0; offset < targets.size; offset += pages.Limit) {
    const page = new Params({ ...pages, Offset: offset }, [], ['Filters', 'Limit', 'Offset']);
    all.push(...select(found, page, FILTERS).page);
  }
  return all;
}

function wireTarget(target: ModelTarget): Backend {
  return {
    Type: target.type,
    InstanceId: target.instanceId ?? '',
    PrivateIpAddresses: [target.ip],
    Port: target.port,
    Weight: target.weight,
    Tag: target.tag,
    RegisteredTime: writtenTime(target.registeredAtMs),
    ...(target.eniId === undefined ? {} : { EniId: target.eniId }),
    ...(target.zone === undefined ? {} : { Zone: target.zone }),
  };
}
