import { parseCidr } from '../crd/ip-text.ts';
import { listOf, type OptionValue } from '../runtime/settings/option-value.ts';
import { integerRange } from '../runtime/settings/value-form.ts';

const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const CIDR_BODY = `${OCTET}(\\.${OCTET}){3}/${integerRange(0, 32)}`;

/** An IPv4 network. */
const cidrValue: OptionValue<string> = {
  metavar: 'CIDR',
  expected: 'an IPv4 network whose host bits are zero, such as 192.168.0.0/20',
  form: { kind: 'text', body: CIDR_BODY },
  parse: (text) => (parseCidr(text)?.family === 4 ? text : undefined),
};

/** Several IPv4 networks. */
export const ipv4CidrsValue = listOf(cidrValue);

/** An IPv4 network, or ''. */
export const ipv4CidrValue: OptionValue<string> = {
  ...cidrValue,
  expected: `${cidrValue.expected}, or ''`,
  form: { kind: 'text', body: `(${CIDR_BODY})?` },
  parse: (text) => (text === '' ? '' : cidrValue.parse(text)),
};
