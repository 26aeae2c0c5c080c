import { type Resource, resourceOf } from './decode-resource.ts';
import { ownedBy, part } from './field.ts';
import { AGE_COLUMN, resourceKind } from './resource-kind.ts';
import { choice, flag, listOf, matchingText, objectOf, sentence, wholeNumber } from './value.ts';

const people = ownedBy('people');

const port = wholeNumber(1, 65_535);
/** Ports of one load balancer: the cloud's quota is 50 unless it was raised. */
const MAX_LISTENERS = 1_000;
const MAX_DOMAINS = 200;
const MAX_RULES = 200;

function session(max: number) {
  return objectOf({
    enable: part.optional(flag, 'Whether a client keeps its target.'),
    sessionExpireTime: part.optional(wholeNumber(30, max), 'For how many seconds; default 30.'),
  });
}

/** What checks of both layers have. */
const CHECK = {
  enable: part.optional(flag, 'False: every target counts as healthy.'),
  intervalTime: part.optional(wholeNumber(5, 300), 'Seconds from one check to the next; default 5.'),
  healthNum: part.optional(wholeNumber(2, 10), 'So many good checks in a row make a target healthy.'),
  unHealthNum: part.optional(wholeNumber(2, 10), 'So many bad checks in a row make a target unhealthy.'),
  timeout: part.optional(wholeNumber(2, 60), 'Seconds until a check counts as bad; below intervalTime. Default 2.'),
  sourceIpType: part.optional(
    wholeNumber(0, 1),
    'Where checks come from: 0 the address of the load balancer, 1 100.64.0.0/10.',
  ),
  httpCode: part.optional(
    wholeNumber(1, 31),
    'Bit mask of accepted answers: 1 for 1xx, 2 for 2xx, 4 for 3xx, 8 for 4xx, 16 for 5xx.',
  ),
  httpCheckPath: part.optional(sentence(200), 'The path that is asked for.'),
  httpCheckDomain: part.optional(sentence(80), 'The Host of the request.'),
  httpCheckMethod: part.optional(choice(['HEAD', 'GET']), 'Default HEAD.'),
};

const L4_CHECK = {
  ...CHECK,
  checkType: part.optional(choice(['TCP', 'HTTP', 'CUSTOM', 'PING']), 'How targets are checked.'),
  checkPort: part.optional(port, 'The port that is checked; default that of the target.'),
  httpVersion: part.optional(choice(['HTTP/1.0', 'HTTP/1.1']), 'For checkType HTTP.'),
  contextType: part.optional(choice(['HEX', 'TEXT']), 'Form of sendContext and recvContext, for checkType CUSTOM.'),
  sendContext: part.optional(sentence(500), 'What is sent.'),
  recvContext: part.optional(sentence(500), 'What has to come back.'),
};

const L4_LISTENER = {
  protocol: part.required(choice(['TCP', 'UDP']), 'Protocol of the listener.'),
  port: part.required(port, 'Port of the listener.'),
  session: part.optional(session(3_600), 'Session persistence.'),
  healthCheck: part.optional(objectOf(L4_CHECK), 'How targets are checked.'),
  scheduler: part.optional(choice(['WRR', 'LEAST_CONN']), 'How a target is selected.'),
  proxyProtocol: part.optional(objectOf({ enable: part.optional(flag, 'Not served.') }), 'Not served.'),
};

const RULE = {
  url: part.required(
    matchingText(/^\S{1,200}$/, 'a path of the Ingress', 200),
    'A path of the Ingress: /a is for each rule of the path. =/a, or /a/ beside it, is for that url of the load balancer alone.',
  ),
  forwardType: part.optional(choice(['HTTP', 'HTTPS', 'GRPC']), 'Protocol that targets are spoken to in.'),
  session: part.optional(session(86_400), 'Session persistence.'),
  healthCheck: part.optional(objectOf(CHECK), 'How targets are checked.'),
  scheduler: part.optional(choice(['WRR', 'LEAST_CONN', 'IP_HASH']), 'How a target is selected.'),
};

const DOMAIN = {
  domain: part.required(sentence(80), "Host of the rules; '' is the address of the load balancer."),
  http2: part.optional(flag, 'Not served.'),
  rules: part.optional(listOf(objectOf(RULE), { maxItems: MAX_RULES }), 'Rules of the domain.'),
};

const L7_LISTENER = {
  protocol: part.required(choice(['HTTP', 'HTTPS']), 'Protocol of the listener.'),
  port: part.required(port, 'Port of the listener.'),
  defaultServer: part.optional(sentence(80), 'The domain that serves requests for any other host.'),
  keepaliveEnable: part.optional(wholeNumber(0, 1), 'Not served.'),
  snatEnable: part.optional(flag, 'Not served.'),
  domains: part.optional(listOf(objectOf(DOMAIN), { maxItems: MAX_DOMAINS }), 'Domains of the listener.'),
};

const LOAD_BALANCER = {
  l4Listeners: part.optional(
    listOf(objectOf(L4_LISTENER), { maxItems: MAX_LISTENERS }),
    'Settings of listeners of TCP and UDP. One that no Service has is not used.',
  ),
  l7Listeners: part.optional(
    listOf(objectOf(L7_LISTENER), { maxItems: MAX_LISTENERS }),
    'Settings of listeners of HTTP and HTTPS. One that no Ingress has is not used.',
  ),
  internetMaxBandwidthOut: part.optional(wholeNumber(0, 2_048), 'Most Mbit/s that a public load balancer sends.'),
};

/** The kind TkeServiceConfig: settings of listeners. A field that is absent leaves the setting as it is. It is the product's. */
export const TKE_SERVICE_CONFIG_KIND = resourceKind({
  kind: 'TkeServiceConfig',
  group: 'cloud.tencent.com',
  version: 'v1alpha1',
  plural: 'tkeserviceconfigs',
  singular: 'tkeserviceconfig',
  shortNames: ['tkesc'],
  scope: 'Namespaced',
  named: 'freely',
  about:
    'Settings of the listeners of Services and Ingresses that name it in an annotation. A field that is absent leaves the setting as it is.',
  fields: {
    spec: people.optional(
      objectOf({ loadBalancer: people.optional(objectOf(LOAD_BALANCER), 'The load balancer.') }),
      'The settings.',
    ),
  },
  rules: [],
  columns: [AGE_COLUMN],
});

/** A decoded TkeServiceConfig. */
export type TkeServiceConfig = Resource<(typeof TKE_SERVICE_CONFIG_KIND)['fields']>;
/** Decodes a TkeServiceConfig. */
export const tkeServiceConfig = resourceOf(TKE_SERVICE_CONFIG_KIND);
