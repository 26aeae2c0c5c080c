import { readClaimExpiry } from '../../crd/pod-network-request.ts';
import { Faults } from '../../runtime/decode.ts';
import { listOf, type OptionValue, textValue } from '../../runtime/settings/option-value.ts';

/** A cluster id. */
export const clusterIdValue = textValue(/^cls-[a-z0-9]{1,32}$/, 'ID', 'the id of the cluster, such as cls-3x5v7b9d');

/** A region, in the cloud's form; '' to ask the instance. */
export const regionValue = textValue(
  /^([a-z]{2,}-[a-z0-9-]+)?$/,
  'REGION',
  "a region such as ap-guangzhou, or '' to ask the instance",
);

/** A role's resource name; '' for none. @see https://www.tencentcloud.com/document/product/598/10606 */
export const roleArnValue = textValue(
  /^(qcs::cam::uin\/\d+:\S+)?$/,
  'ARN',
  "a role such as qcs::cam::uin/100000000001:roleName/ipamd, or ''",
);

/** The base URL of an HTTP service. */
export const httpUrlValue = textValue(
  /^https?:\/\/[^\s/?#]+[^\s?#]*[^\s/?#]$/,
  'URL',
  'a URL such as http://host/path, without a slash at its end',
);

/** The URL of the API server; '' for that of the kubeconfig or of the cluster. */
export const masterValue = textValue(
  /^(https?:\/\/[^\s/?#]+)?$/,
  'URL',
  "a URL such as https://10.0.0.1:6443, or '' for the kubeconfig's or the cluster's own",
);

/** A name of a Kubernetes object that is not empty. */
export const objectNameValue = textValue(
  /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/,
  'NAME',
  'the name of an object, in lower case',
);

/** A list of subnet ids. */
export const subnetIdsValue = listOf(textValue(/^subnet-[a-z0-9]{1,32}$/, 'ID', 'a subnet such as subnet-a1b2c3d4'));

/** A list of security group ids. */
export const securityGroupIdsValue = listOf(
  textValue(/^sg-[a-z0-9]{1,32}$/, 'ID', 'a security group such as sg-a1b2c3d4'),
);

/** Hosts of the cloud's API. */
type Endpoints = {
  /** Each product is `<product>.<domain>`. */
  readonly domain: string | undefined;
  /** One host, optionally with a port, for all products. */
  readonly host: string | undefined;
  /** Hosts of single products; they take precedence over both. */
  readonly hosts: Readonly<Partial<Record<EndpointProduct, string>>>;
};

const PRODUCTS = ['vpc', 'cvm', 'sts'] as const;
type EndpointProduct = (typeof PRODUCTS)[number];

const ENDPOINT = /^(?:(?<product>vpc|cvm|sts)=|(?<wildcard>\*\.))?(?<host>[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?)$/i;

/** Where the cloud's API is: `*.DOMAIN`, `HOST[:PORT]`, `PRODUCT=HOST[:PORT]`; each at most once. */
export const endpointsValue: OptionValue<Endpoints> = {
  metavar: '[PRODUCT=]HOST',
  expected: `*.DOMAIN, or HOST[:PORT] for all, or PRODUCT=HOST[:PORT] with a product of ${PRODUCTS.join(', ')}; each once, commas between them`,
  isList: true,
  parse: (text) => {
    const hosts: Partial<Record<EndpointProduct, string>> = {};
    let domain: string | undefined;
    let host: string | undefined;
    for (const part of text.split(',')) {
      const groups = ENDPOINT.exec(part)?.groups;
      const product = PRODUCTS.find((candidate) => candidate === groups?.['product']);
      const hostText = groups?.['host'];
      const isTaken = product === undefined ? (domain ?? host) !== undefined : hosts[product] !== undefined;
      if (hostText === undefined || isTaken) return undefined;
      if (product !== undefined) hosts[product] = hostText;
      else if (groups?.['wildcard'] === undefined) host = hostText;
      else domain = hostText;
    }
    return Object.freeze({ domain, host, hosts: Object.freeze(hosts) });
  },
};

/** How long a static address is retained; milliseconds, 0 without limit. */
export const claimExpiryValue: OptionValue<number> = {
  metavar: 'TIME',
  expected: 'a time of at least 5m such as 30m or 1h30m, or 0s for ever',
  parse: (text) => readClaimExpiry(text, '', new Faults()),
};
