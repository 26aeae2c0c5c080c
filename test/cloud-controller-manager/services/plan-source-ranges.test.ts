import test from 'ava';
import { renderRules } from '../../../cloud-controller-manager/balancers/compare-rules.ts';
import { planSourceRanges } from '../../../cloud-controller-manager/services/plan-source-ranges.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';

const RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges';
const GROUPS = 'service.cloud.tencent.com/security-groups';
const EXISTED = 'service.kubernetes.io/tke-existed-lbid';

type Given = {
  readonly ranges?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  /** `TCP/80`. */
  readonly ports?: readonly string[];
};

function plan({ ranges = [], annotations = {}, ports = ['TCP/80'] }: Given) {
  const { settings, notices } = readAnnotations(annotations, {});
  const spec = {
    sourceRanges: ranges,
    ports: ports.map((text) => {
      const [protocol, port] = text.split('/');
      return { name: text, protocol: protocol === 'UDP' ? ('UDP' as const) : ('TCP' as const), port: Number(port) };
    }),
  };
  const planned = planSourceRanges(spec, settings);
  return { ...planned, notices: [...notices, ...planned.notices] };
}

const ADMITTED: readonly (readonly [title: string, given: Given, rules: string | undefined])[] = [
  ['no ranges', {}, undefined],
  ['everyone', { ranges: ['0.0.0.0/0'] }, undefined],
  ['everyone, beside a network', { ranges: ['10.0.0.0/8', '0.0.0.0/0'] }, undefined],
  ['an empty annotation', { annotations: { [RANGES]: ' ' } }, undefined],
  ['a network', { ranges: ['10.0.0.0/8'] }, 'ACCEPT TCP:80 from 10.0.0.0/8'],
  ['by the annotation', { annotations: { [RANGES]: '10.0.0.0/8' } }, 'ACCEPT TCP:80 from 10.0.0.0/8'],
  [
    'bits of the host, blanks and the same twice',
    { ranges: [' 10.1.2.3/8', '10.0.0.0/8 ', '192.0.2.7/32'] },
    'ACCEPT TCP:80 from 10.0.0.0/8, ACCEPT TCP:80 from 192.0.2.7/32',
  ],
  [
    'ports of both protocols, with those that follow each other as one',
    { ranges: ['10.0.0.0/8'], ports: ['TCP/443', 'UDP/53', 'TCP/81', 'TCP/80', 'TCP/82'] },
    'ACCEPT TCP:443 from 10.0.0.0/8, ACCEPT TCP:80-82 from 10.0.0.0/8, ACCEPT UDP:53 from 10.0.0.0/8',
  ],
];

for (const [title, given, rules] of ADMITTED) {
  test(`admits: ${title}`, (t) => {
    const planned = plan(given);
    t.deepEqual(planned.notices, []);
    t.is(planned.rules === undefined ? undefined : renderRules(planned.rules), rules);
  });
}

const REFUSED: readonly (readonly [title: string, given: Given, reason: string, words: RegExp])[] = [
  [
    'nonsense',
    { ranges: ['10.0.0.0/8', 'office'] },
    'ServiceInvalid',
    /spec.*"office" is no network; write one such as/,
  ],
  ['an address', { ranges: ['10.0.0.1'] }, 'ServiceInvalid', /"10.0.0.1" is no network/],
  ['a prefix that is too long', { ranges: ['10.0.0.0/33'] }, 'ServiceInvalid', /"10.0.0.0\/33" is no network/],
  ['IPv6 alone', { ranges: ['fd00::/8'] }, 'ServiceRefused', /"fd00::\/8": .*no IPv6 address.*add the IPv4 networks/],
  ['what the cloud widens', { ranges: ['0.0.0.0/1'] }, 'ServiceRefused', /"0.0.0.0\/1": .*admits everyone; name other/],
  ['the same by bits of the host', { ranges: ['0.1.2.3/8'] }, 'ServiceRefused', /"0.1.2.3\/8": .*admits everyone/],
  ['nonsense in the annotation', { annotations: { [RANGES]: 'a,b' } }, 'AnnotationInvalid', /must be networks such as/],
  [
    'no network in the annotation',
    { annotations: { [RANGES]: '10.0.0.0/8,10.0.0.0/99' } },
    'ServiceInvalid',
    /annotation service.beta.*"10.0.0.0\/99" is no network/,
  ],
  [
    'a load balancer that exists',
    { ranges: ['10.0.0.0/8'], annotations: { [EXISTED]: 'lb-a1b2c3d4' } },
    'ServiceRefused',
    /lb-a1b2c3d4 is not made for this Service.*remove them here/,
  ],
  [
    'security groups that are to be taken off',
    { ranges: ['10.0.0.0/8'], annotations: { [GROUPS]: '' } },
    'ServiceRefused',
    /asks for a security group.*security-groups is empty.*remove one of them/,
  ],
];

for (const [title, given, reason, words] of REFUSED) {
  test(`refuses: ${title}`, (t) => {
    const blocking = plan(given).notices.filter(({ blocks }) => blocks);
    t.like(blocking, [{ reason }]);
    t.is(blocking.length, 1);
    t.regex(blocking[0]?.message ?? '', words);
  });
}

test('the field has precedence over the annotation, which is said where they differ', (t) => {
  const both = plan({ ranges: ['10.0.0.0/8'], annotations: { [RANGES]: '192.0.2.0/24' } });
  t.is(renderRules(both.rules ?? []), 'ACCEPT TCP:80 from 10.0.0.0/8');
  t.like(both.notices, [{ reason: 'AnnotationRefused', blocks: false }]);
  t.deepEqual(plan({ ranges: ['10.0.0.0/8'], annotations: { [RANGES]: '10.0.0.0/8' } }).notices, []);
});

test('security groups that the Service names decide alone, which is said', (t) => {
  const { rules, notices } = plan({ ranges: ['10.0.0.0/8'], annotations: { [GROUPS]: 'sg-a1b2c3d4' } });
  t.is(rules, undefined);
  t.like(notices, [{ reason: 'ServiceRefused', blocks: false }]);
  t.regex(notices[0]?.message ?? '', /not applied.*remove it, or the ranges/);
});

test('an IPv6 network beside others is left out, which is said', (t) => {
  const { rules = [], notices } = plan({ ranges: ['10.0.0.0/8', 'fd00::/8'] });
  t.is(renderRules(rules), 'ACCEPT TCP:80 from 10.0.0.0/8');
  t.like(notices, [{ reason: 'ServiceRefused', blocks: false }]);
  t.regex(notices[0]?.message ?? '', /"fd00::\/8" admits no client/);
});
