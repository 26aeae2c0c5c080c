import test from 'ava';
import { INGRESS_CLASS_ANNOTATION } from '../../../cloud-controller-manager/ingresses/decide-ingress.ts';
import {
  INGRESS_LOAD_BALANCER_ANNOTATION,
  readAnnotations,
  WRITTEN_ANNOTATIONS,
} from '../../../cloud-controller-manager/ingresses/read-annotations.ts';
import { REFUSED_ANNOTATIONS } from '../../../cloud-controller-manager/ingresses/refused-annotations.ts';
import { SERVED_ANNOTATIONS } from '../../../cloud-controller-manager/ingresses/served-annotations.ts';

const CLOUD = 'ingress.cloud.tencent.com';

for (const { name } of Object.values(SERVED_ANNOTATIONS)) {
  test(`malformed: ${name}`, (t) => {
    const { settings, notices } = readAnnotations({ [name]: '\u0001 nonsense' });
    t.deepEqual(settings, {});
    t.is(notices.length, 1);
    t.like(notices[0], { reason: 'AnnotationInvalid', blocks: true });
    t.true(notices[0]?.message.startsWith(`annotation ${name} must be `));
  });
}

for (const { name, blocks, neutral } of REFUSED_ANNOTATIONS) {
  test(`refused: ${name}`, (t) => {
    const { notices } = readAnnotations({ [name]: 'true' });
    t.is(notices.length, 1);
    t.like(notices[0], { reason: 'AnnotationRefused', blocks });
    for (const one of neutral) t.deepEqual(readAnnotations({ [name]: one }).notices, []);
  });
}

test('what the controller writes, and the class, is not reported', (t) => {
  const names = [...WRITTEN_ANNOTATIONS.map(({ name }) => name), INGRESS_CLASS_ANNOTATION];
  t.true(names.includes(INGRESS_LOAD_BALANCER_ANNOTATION));
  t.deepEqual(readAnnotations(Object.fromEntries(names.map((name) => [name, 'x']))).notices, []);
});

test('a spelling mistake is reported; names of others are not', (t) => {
  const annotations = {
    [`${CLOUD}/auto-rewrit`]: 'true',
    'kubernetes.io/ingress.rulemix': 'true',
    'example.com/a': 'b',
  };
  const { notices } = readAnnotations(annotations);
  t.is(notices.length, 2);
  for (const { message } of notices) t.regex(message, /has no meaning here; docs\/reference\/ingress-annotations\.md/);
});

const VALUES: readonly (readonly [name: string, text: string, key: string, value: unknown])[] = [
  [`${CLOUD}/auto-rewrite`, 'false', 'autoRewrite', false],
  [`${CLOUD}/auto-rewrite-code`, '302', 'autoRewriteCode', '302'],
  [`${CLOUD}/listen-ports`, '[{"HTTP":80},{"HTTPS":443}]', 'listenPorts', { HTTP: [80], HTTPS: [443] }],
  [`${CLOUD}/certificate`, '[{"qcloud_cert_id":["abcd1234"]}]', 'certificates', [{ hosts: [], ids: ['abcd1234'] }]],
  [`${CLOUD}/lb-rs-weight`, '{"defaultWeight":0}', 'weights', { defaultWeight: 0, groups: [] }],
  [
    'kubernetes.io/ingress.http-rules',
    '[{"path":"/a","backend":{"serviceName":"s","servicePort":"http"},"rewrite":{"port":443}}]',
    'httpRules',
    [{ host: '', path: '/a', backend: { service: 's', port: 'http' }, rewrite: { port: 443, host: '', path: '/' } }],
  ],
];

for (const [name, text, key, value] of VALUES) {
  test(`value of ${name}`, (t) => {
    const { settings, notices } = readAnnotations({ [name]: text });
    t.deepEqual(notices, []);
    t.deepEqual(settings as Record<string, unknown>, { [key]: value });
  });
}

const FAULTS: readonly (readonly [name: string, text: string, expected: RegExp])[] = [
  [`${CLOUD}/direct-access`, 'yes', /must be "true" or "false", not "yes"/],
  [`${CLOUD}/listen-ports`, '[]', /must be 1 to 50 ports, each once/],
  [`${CLOUD}/listen-ports`, '[{"HTTP":80},{"HTTPS":80}]', /each once/],
  [`${CLOUD}/listen-ports`, '[{"TCP":80}]', /with \[0\]\.TCP: no such field/],
  [`${CLOUD}/certificate`, '[{"qcloud_cert_id":[]}]', /one id of a certificate for hosts, or two/],
  [`${CLOUD}/certificate`, '[{"qcloud_cert_id":["x"]}]', /qcloud_cert_id\[0\]: the id of a certificate/],
  [`${CLOUD}/lb-rs-weight`, '{"defaultWeight":101}', /defaultWeight: a whole number from 0 to 100/],
  ['kubernetes.io/ingress.http-rules', '[{"path":"/a"}]', /\[0\]\.backend: a value/],
  ['kubernetes.io/ingress.http-rules', `[${' '.repeat(70_000)}]`, /at most 65536 characters/],
];

for (const [name, text, expected] of FAULTS) {
  test(`${name} ${text.slice(0, 40)}`, (t) => {
    t.regex(readAnnotations({ [name]: text }).notices[0]?.message ?? '', expected);
  });
}
