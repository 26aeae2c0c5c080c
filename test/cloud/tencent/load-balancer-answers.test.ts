/** Answers about load balancers, typed after the SDK's types: odd ones, and ones that are wrong. */
import test from 'ava';
import fc from 'fast-check';
import { isCloudError } from '../../../cloud/cloud-error.ts';
import {
  decodeCertificateDetail,
  decodeCertificatePage,
  decodeCertificateUsers,
  decodeUploaded,
  requireDeleted,
} from '../../../cloud/tencent/decode/certificate.ts';
import { decodeCreatedListeners, decodeListeners } from '../../../cloud/tencent/decode/listener.ts';
import {
  decodeAccepted,
  decodeLoadBalancerPage,
  decodeLoadBalancerQuotas,
  decodeLoadBalancerTask,
} from '../../../cloud/tencent/decode/load-balancer.ts';
import { decodeCreatedRules, decodeRewrites } from '../../../cloud/tencent/decode/rule.ts';
import {
  decodeBatch,
  decodeFoundTargets,
  decodeTargetHealth,
  decodeTargets,
} from '../../../cloud/tencent/decode/target.ts';
import { assertLaw } from '../../support/law.ts';

const BALANCER = {
  LoadBalancerId: 'lb-1',
  LoadBalancerName: 'web',
  LoadBalancerType: 'INTERNAL',
  Status: 1,
  LoadBalancerVips: ['10.0.0.9'],
  LoadBalancerDomain: '',
  VpcId: 'vpc-1',
  SubnetId: 'subnet-1',
  Tags: [{ TagKey: 'owner', TagValue: 'u1' }, { TagKey: 'bare' }],
  SecureGroups: ['sg-1'],
  AttributeFlags: ['DeleteProtect'],
  ChargeType: 'PREPAID',
  NetworkAttributes: { InternetChargeType: 'TRAFFIC_POSTPAID_BY_HOUR', InternetMaxBandwidthOut: 10 },
  CreateTime: '2026-11-26 12:00:00',
};
const PAGE = { LoadBalancerSet: [BALANCER], TotalCount: 1, RequestId: 'r-1' };

const LISTENER = {
  ListenerId: 'lbl-1',
  ListenerName: 'u1/80',
  Protocol: 'TCP',
  Port: 80,
  EndPort: 0,
  HealthCheck: {
    HealthSwitch: 1,
    TimeOut: 2,
    IntervalTime: 5,
    HealthNum: 3,
    UnHealthNum: 4,
    HttpCode: null,
    HttpCheckPath: '',
    CheckPort: -1,
    ContextType: '',
    CheckType: 'TCP',
    SourceIpType: 1,
  },
  Scheduler: 'WRR',
  SessionExpireTime: 0,
  DeregisterTargetRst: false,
  IdleConnectTimeout: null,
  CreateTime: '2026-11-26 12:00:00',
};
const LISTENERS = { Listeners: [LISTENER], TotalCount: 1, RequestId: 'r-1' };

const BACKEND = {
  Type: 'ENI',
  InstanceId: 'ins-1',
  EniId: 'eni-1',
  Port: 8080,
  Weight: 20,
  PrivateIpAddresses: ['10.0.0.7'],
  Tag: 'u1',
  RegisteredTime: '2026-11-26 12:00:00',
};
const TARGETS = { Listeners: [{ ListenerId: 'lbl-1', Protocol: 'TCP', Port: 80, Targets: [BACKEND] }] };

const HEALTH = { IP: '10.0.0.7', Port: 8080, HealthStatus: true, HealthStatusDetail: 'Alive' };
const HEALTHS = {
  LoadBalancers: [{ LoadBalancerId: 'lb-1', Listeners: [{ ListenerId: 'lbl-1', Rules: [{ Targets: [HEALTH] }] }] }],
};

const FOUND = {
  LoadBalancers: [
    {
      LoadBalancerId: 'lb-1',
      Vip: '10.0.0.9',
      Listeners: [
        { ListenerId: 'lbl-1', Targets: [{ Type: 'eni', PrivateIp: '10.0.0.7', Port: 8080, Weight: 20 }] },
        {
          ListenerId: 'lbl-2',
          Targets: null,
          Rules: [{ LocationId: 'loc-1', Targets: [{ PrivateIp: '10.0.0.8', Port: 80 }] }],
        },
      ],
    },
  ],
};

const QUOTAS = {
  QuotaSet: [
    { QuotaId: 'TOTAL_LISTENER_QUOTA', QuotaCurrent: null, QuotaLimit: 50 },
    { QuotaId: 'TOTAL_OPEN_CLB_QUOTA', QuotaCurrent: 3, QuotaLimit: 100 },
    { QuotaId: 'TOTAL_NEW_QUOTA', QuotaCurrent: 3, QuotaLimit: 100 },
  ],
};

const RULE = {
  ...{ LocationId: 'loc-1', ListenerId: 'lbl-2', Domain: '10.0.0.9', Url: '/', DefaultServer: true },
  ...{ Scheduler: 'WRR', SessionExpireTime: 0, ForwardType: 'HTTP', BeAutoCreated: false },
  HealthCheck: { CheckType: 'HTTP', HttpCheckPath: '/' },
  Certificate: { CertId: 'c-1', CertCaId: 'ca-1', ExtCertIds: ['c-1', 'c-2', ''] },
  RewriteTarget: { TargetListenerId: 'lbl-3', TargetLocationId: 'loc-3', RewriteCode: 301, TakeUrl: true },
};
const WEB = { ListenerId: 'lbl-2', Protocol: 'HTTPS', Port: 443, SniSwitch: 1, Rules: [RULE] };
const CERTIFICATE = {
  ...{ CertificateId: 'c-1', Alias: 'web', Domain: 'A.b', SubjectAltName: ['A.b'], From: 'upload' },
  ...{ CertBeginTime: '2026-11-26 12:00:00', CertEndTime: '2027-11-26 12:00:00', EncryptAlgorithm: 'ECC 256' },
  InsertTime: '2026-11-26 12:00:00',
  ...{ Tags: [{ TagKey: 'owner', TagValue: 'u1' }], CertificatePrivateKey: 'hidden' },
};

/** Each decoder with an answer that it takes. */
const DECODERS: readonly (readonly [string, object, (value: unknown) => unknown])[] = [
  ['DescribeLoadBalancers', PAGE, decodeLoadBalancerPage],
  ['DescribeListeners', LISTENERS, decodeListeners],
  ['DescribeListeners of layer 7', { Listeners: [WEB], TotalCount: 1 }, decodeListeners],
  ['CreateRule', { LocationIds: ['loc-1'] }, (value) => decodeCreatedRules(value, 1)],
  ['DescribeRewrite', { RewriteSet: [RULE] }, decodeRewrites],
  ['DescribeCertificates', { Certificates: [CERTIFICATE], TotalCount: 1 }, decodeCertificatePage],
  ['DescribeCertificateDetail', CERTIFICATE, decodeCertificateDetail],
  ['UploadCertificate', { CertificateId: 'c-1' }, decodeUploaded],
  ['DeleteCertificate', { DeleteResult: true }, requireDeleted],
  [
    'DescribeLoadBalancerListByCertId',
    { CertSet: [{ CertId: 'c-1', LoadBalancers: [{ LoadBalancerId: 'lb-1', Domain: '' }] }] },
    (value) => decodeCertificateUsers(value, ['c-1']),
  ],
  ['CreateListener', { ListenerIds: ['lbl-1'] }, (value) => decodeCreatedListeners(value, 1)],
  ['DescribeTargets', TARGETS, (value) => decodeTargets(value, ['lbl-1'])],
  ['DescribeTargetHealth', HEALTHS, (value) => decodeTargetHealth(value, ['lb-1'])],
  ['DescribeLBListeners', FOUND, decodeFoundTargets],
  ['DescribeQuota', QUOTAS, decodeLoadBalancerQuotas],
  [
    'BatchRegisterTargets',
    { FailListenerIdSet: ['lbl-1'], Message: 'no' },
    (value) => decodeBatch(value, 'BatchRegisterTargets'),
  ],
  ['ModifyListener', { RequestId: 'r-1', DealName: '' }, (value) => decodeAccepted(value, 'ModifyListener')],
  ['DescribeTaskStatus', { Status: 0, LoadBalancerIds: ['lb-1'], Message: '' }, decodeLoadBalancerTask],
];

test('decodeLoadBalancerPage: all fields; times are those of China', (t) => {
  t.deepEqual(decodeLoadBalancerPage(PAGE), {
    objects: [
      {
        loadBalancerId: 'lb-1',
        name: 'web',
        type: 'INTERNAL',
        isNormal: true,
        vips: ['10.0.0.9'],
        domain: '',
        vpcId: 'vpc-1',
        subnetId: 'subnet-1',
        tags: { owner: 'u1', bare: '' },
        securityGroupIds: ['sg-1'],
        passesToTarget: false,
        isSnatPro: false,
        isDeleteProtected: true,
        isPrepaid: true,
        chargeType: 'TRAFFIC_POSTPAID_BY_HOUR',
        bandwidthMbps: 10,
        createdAtMs: Date.parse('2026-11-26T04:00:00Z'),
      },
    ],
    total: 1,
  });
});

test('decodeLoadBalancerPage: one of a strange kind, or with nothing but an id, hides no other', (t) => {
  const bare = Object.fromEntries(Object.keys(BALANCER).map((key) => [key, null]));
  const strange = { ...BALANCER, LoadBalancerId: 'lb-2', LoadBalancerType: 'ANYCAST', Status: 7 };
  const set = [BALANCER, strange, { ...bare, LoadBalancerId: 'lb-3' }];
  const { objects } = decodeLoadBalancerPage({ LoadBalancerSet: set, TotalCount: 3 });
  t.deepEqual(
    objects.map(({ loadBalancerId, type, isNormal }) => [loadBalancerId, type, isNormal]),
    [
      ['lb-1', 'INTERNAL', true],
      ['lb-2', 'UNKNOWN', false],
      ['lb-3', 'UNKNOWN', false],
    ],
  );
  t.like(objects[2], { vips: [], tags: {}, isPrepaid: false, chargeType: undefined, createdAtMs: 0 });
});

test('decodeListeners: what is empty is not set; a check of any protocol is taken', (t) => {
  const http = { ...LISTENER.HealthCheck, CheckType: 'GRPC', CheckPort: 30_100, HttpCode: 12, SourceIpType: 0 };
  const ofHttp = { ListenerId: 'lbl-2', Protocol: 'HTTPS', Port: 443, HealthCheck: null, Rules: [] };
  const custom = { CheckType: 'CUSTOM', ContextType: 'HEX', SendContext: '00FF', RecvContext: null };
  const others = [ofHttp, { ...LISTENER, ListenerId: 'lbl-3', EndPort: 90, HealthCheck: http }];
  const last = { ListenerId: 'lbl-4', Protocol: 'UDP', Port: 53, HealthCheck: custom };
  const found = decodeListeners({ Listeners: [LISTENER, ...others, last], TotalCount: 4 });
  t.deepEqual(found[0], {
    listenerId: 'lbl-1',
    name: 'u1/80',
    protocol: 'TCP',
    port: 80,
    scheduler: 'WRR',
    sessionSeconds: 0,
    resetsOnDeregister: false,
    healthCheck: {
      isOn: true,
      kind: 'TCP',
      intervalSeconds: 5,
      timeoutSeconds: 2,
      healthyThreshold: 3,
      unhealthyThreshold: 4,
      checkPort: 'target',
      source: 'shared-range',
    },
    createdAtMs: Date.parse('2026-11-26T04:00:00Z'),
  });
  t.deepEqual(found[1], { listenerId: 'lbl-2', name: '', protocol: 'HTTPS', port: 443, rules: [], createdAtMs: 0 });
  t.like(found[2], {
    endPort: 90,
    healthCheck: { kind: 'GRPC', checkPort: 30_100, source: 'vip', http: { codes: 12 } },
  });
  t.deepEqual(found[3]?.healthCheck, { kind: 'CUSTOM', exchange: { format: 'HEX', send: '00FF', receive: '' } });
});

test('decodeListeners, decodeRewrites: a rule of the address has no domain; certificates are listed once', (t) => {
  const [listener] = decodeListeners({ Listeners: [WEB], TotalCount: 1 });
  t.true(listener?.isSni);
  t.like(listener?.rules?.[0], { ruleId: 'loc-1', domain: '', url: '/', isDefault: true, scheduler: 'WRR' });
  t.deepEqual(listener?.rules?.[0]?.certificate, { certIds: ['c-1', 'c-2'], caCertId: 'ca-1' });
  t.deepEqual(listener?.rules?.[0]?.rewriteTo, { listenerId: 'lbl-3', ruleId: 'loc-3' });
  t.like(decodeRewrites({ RewriteSet: [RULE] })[0], { sourceRuleId: 'loc-1', targetRuleId: 'loc-3', code: 301 });
  t.deepEqual(decodeRewrites({ RewriteSet: null }), []);
});

test('decodeCertificateDetail: names in lower case, times of China, no private key', (t) => {
  t.deepEqual(decodeCertificateDetail(CERTIFICATE), {
    ...{ certId: 'c-1', name: 'web', domain: 'a.b', altNames: ['a.b'], algorithm: 'ECC', isUploaded: true },
    ...{ notBeforeMs: Date.parse('2026-11-26T04:00:00Z'), notAfterMs: Date.parse('2027-11-26T04:00:00Z') },
    createdAtMs: Date.parse('2026-11-26T04:00:00Z'),
    tags: { owner: 'u1' },
  });
});

test('decodeTargets: only an instance by its primary address has its id; each address is a target', (t) => {
  const node = { ...BACKEND, Type: 'CVM', PrivateIpAddresses: ['10.0.0.1', '10.0.0.2'], Tag: null, Weight: null };
  const listeners = [
    { ListenerId: 'lbl-1', Targets: [BACKEND, node] },
    { ListenerId: 'lbl-2', Targets: null },
  ];
  t.deepEqual(
    decodeTargets({ Listeners: listeners }, ['lbl-1', 'lbl-2']).map(({ ip, instanceId, weight, tag }) => [
      ip,
      instanceId,
      weight,
      tag,
    ]),
    [
      ['10.0.0.7', undefined, 20, 'u1'],
      ['10.0.0.1', 'ins-1', 10, ''],
      ['10.0.0.2', 'ins-1', 10, ''],
    ],
  );
});

test('decodeTargetHealth: a check that is off counts as healthy, a word that is not known as its flag', (t) => {
  const states = (['Alive', 'Dead', 'Unknown', 'Close', 'Brand new', null] as const).flatMap((detail) =>
    [true, false].map((isGood) => {
      const Targets = [{ ...HEALTH, HealthStatus: isGood, HealthStatusDetail: detail }];
      const Listeners = [{ ListenerId: 'lbl-1', Rules: [{ Targets }] }];
      const [one] = decodeTargetHealth({ LoadBalancers: [{ LoadBalancerId: 'lb-1', Listeners }] }, ['lb-1']);
      return one?.state;
    }),
  );
  t.deepEqual(states, [
    ...['healthy', 'healthy', 'unhealthy', 'unhealthy', 'unknown', 'unknown'],
    ...['unchecked', 'unchecked', 'healthy', 'unknown', 'healthy', 'unknown'],
  ]);
});

test('decodeFoundTargets: a target of a rule has its id', (t) => {
  t.deepEqual(decodeFoundTargets(FOUND), [
    { loadBalancerId: 'lb-1', listenerId: 'lbl-1', ip: '10.0.0.7', port: 8080, weight: 20 },
    { loadBalancerId: 'lb-1', listenerId: 'lbl-2', ruleId: 'loc-1', ip: '10.0.0.8', port: 80, weight: 10 },
  ]);
  t.deepEqual(decodeFoundTargets({ LoadBalancers: null }), []);
});

test('decodeLoadBalancerQuotas, decodeBatch, decodeAccepted: what is null is not there', (t) => {
  t.deepEqual(decodeLoadBalancerQuotas(QUOTAS), {
    openLoadBalancers: { limit: 100, used: 3 },
    listeners: { limit: 50 },
  });
  t.deepEqual(decodeBatch({ FailListenerIdSet: null, Message: null }, 'X'), { refusedIds: [], message: '' });
  t.deepEqual(decodeBatch({ FailListenerIdSet: [''] }, 'X'), { refusedIds: [], message: '' });
  t.deepEqual(decodeAccepted({ RequestId: 'r-1', DealName: null, LoadBalancerIds: null }, 'X'), {
    taskId: 'r-1',
    action: 'X',
  });
});

const wrong = test.macro((t, decode: () => unknown) => {
  const error = t.throws(decode);
  t.true(isCloudError(error, 'resolve') && error.code === 'BAD_ANSWER', error?.message);
});

const long = 'x'.repeat(10_001);
const listenersOf = (count: number): object => ({ Listeners: Array.from({ length: count }, () => LISTENER) });
const many = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value);

test('wrong: a page is missing', wrong, () => decodeLoadBalancerPage({ LoadBalancerSet: null, TotalCount: 4 }));
test('wrong: a page that is too long', wrong, () =>
  decodeLoadBalancerPage({ LoadBalancerSet: many(101, BALANCER), TotalCount: 101 }),
);
test('wrong: a name that is too long', wrong, () =>
  decodeLoadBalancerPage({ LoadBalancerSet: [{ ...BALANCER, LoadBalancerName: long }], TotalCount: 1 }),
);
test('wrong: tags that are too many', wrong, () =>
  decodeLoadBalancerPage({ LoadBalancerSet: [{ ...BALANCER, Tags: many(101, { TagKey: 'k' }) }], TotalCount: 1 }),
);
test('wrong: listeners that are not all there', wrong, () => decodeListeners({ ...listenersOf(2), TotalCount: 3 }));
test('wrong: listeners without a total', wrong, () => decodeListeners(listenersOf(1)));
test('wrong: listeners that are missing', wrong, () => decodeListeners({ TotalCount: 1 }));
test('wrong: fewer ids than ports', wrong, () => decodeCreatedListeners({ ListenerIds: ['lbl-1'] }, 2));
test('wrong: fewer ids than rules', wrong, () => decodeCreatedRules({ LocationIds: [] }, 1));
test('wrong: a redirect without a target', wrong, () =>
  decodeRewrites({ RewriteSet: [{ ...RULE, RewriteTarget: null }] }),
);
test('wrong: certificates that are missing', wrong, () => decodeCertificatePage({ Certificates: null, TotalCount: 1 }));
test('wrong: a certificate that is not deleted yet', wrong, () => requireDeleted({ DeleteResult: false, TaskId: '1' }));
test('wrong: a listener without its line of targets', wrong, () => decodeTargets(TARGETS, ['lbl-1', 'lbl-2']));
test('wrong: no targets at all', wrong, () => decodeTargets({ Listeners: null }, ['lbl-1']));
test('wrong: a port that is none', wrong, () =>
  decodeTargets({ Listeners: [{ ListenerId: 'lbl-1', Targets: [{ ...BACKEND, Port: 70_000 }] }] }, ['lbl-1']),
);
test('wrong: a load balancer without its health', wrong, () => decodeTargetHealth(HEALTHS, ['lb-1', 'lb-2']));
test('wrong: a task in no known state', wrong, () => decodeLoadBalancerTask({ Status: 7 }));
test('wrong: a change without the id of its task', wrong, () => decodeAccepted({ RequestId: '' }, 'ModifyListener'));

for (const [action, good, decode] of DECODERS) {
  test(`${action}: nonsense anywhere in an answer is refused as BAD_ANSWER, or does not matter`, async (t) => {
    const places = placesOf(good);
    await assertLaw(
      t,
      (inner) =>
        fc.property(fc.constantFrom(...places), fc.anything({ maxDepth: 2 }), (place, nonsense) => {
          try {
            decode(replaced(good, place, nonsense));
            inner.pass();
          } catch (error) {
            inner.true(isCloudError(error, 'resolve') && error.code === 'BAD_ANSWER', String(error));
          }
        }),
      { numRuns: 60 },
    );
  });
}

type Place = readonly (string | number)[];

/** Every place in a value, the value itself included. */
function placesOf(value: unknown): readonly Place[] {
  const inner =
    typeof value !== 'object' || value === null
      ? []
      : Object.entries(value).flatMap(([key, part]) =>
          placesOf(part).map((rest) => [Array.isArray(value) ? Number(key) : key, ...rest]),
        );
  return [[], ...inner];
}

function replaced(value: unknown, [key, ...rest]: Place, by: unknown): unknown {
  if (key === undefined) return by;
  const copy: unknown = Array.isArray(value) ? [...value] : { ...(value as object) };
  Reflect.set(copy as object, key, replaced(Reflect.get(value as object, key), rest, by));
  return copy;
}
