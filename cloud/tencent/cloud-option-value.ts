import { type OptionValue, textValue } from '../../runtime/settings/option-value.ts';

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

/** Hosts of the cloud's API. */
type Endpoints = {
  /** Each product is `<product>.<domain>`. */
  readonly domain: string | undefined;
  /** One host, optionally with a port, for all products. */
  readonly host: string | undefined;
  /** Hosts of single products; they take precedence over both. */
  readonly hosts: Readonly<Partial<Record<EndpointProduct, string>>>;
};

const PRODUCTS = ['vpc', 'cvm', 'clb', 'sts'] as const;
type EndpointProduct = (typeof PRODUCTS)[number];

const ENDPOINT =
  /^(?:(?<product>vpc|cvm|clb|sts)=|(?<wildcard>\*\.))?(?<host>[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?)$/i;

const ENDPOINT_BODY =
  '(([vV][pP][cC]|[cC][vV][mM]|[cC][lL][bB]|[sS][tT][sS])=|\\*\\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?';

/** Where the cloud's API is: `*.DOMAIN`, `HOST[:PORT]`, `PRODUCT=HOST[:PORT]`; each at most once. */
export const endpointsValue: OptionValue<Endpoints> = {
  metavar: '[PRODUCT=]HOST',
  expected: `*.DOMAIN, or HOST[:PORT] for all, or PRODUCT=HOST[:PORT] with a product of ${PRODUCTS.join(', ')}; each once, commas between them`,
  // ENDPOINT without its names of groups.
  form: { kind: 'text', body: `${ENDPOINT_BODY}(,${ENDPOINT_BODY})*` },
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
