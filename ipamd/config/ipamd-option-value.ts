import { parseCidr } from '../../crd/ip-text.ts';
import { MIN_CLAIM_EXPIRY_MS, readClaimExpiry } from '../../crd/pod-network-request.ts';
import { Faults } from '../../runtime/decode.ts';
import { listOf, type OptionValue, textValue } from '../../runtime/settings/option-value.ts';
import { durationForm, integerRange } from '../../runtime/settings/value-form.ts';

/** A cluster id. */
export const clusterIdValue = textValue(/^cls-[a-z0-9]{1,32}$/, 'ID', 'the id of the cluster, such as cls-3x5v7b9d');

/** A list of subnet ids. */
export const subnetIdsValue = listOf(textValue(/^subnet-[a-z0-9]{1,32}$/, 'ID', 'a subnet such as subnet-a1b2c3d4'));

/** A list of security group ids. */
export const securityGroupIdsValue = listOf(
  textValue(/^sg-[a-z0-9]{1,32}$/, 'ID', 'a security group such as sg-a1b2c3d4'),
);

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

/** How long a static address is retained; milliseconds, 0 without limit. */
export const claimExpiryValue: OptionValue<number> = {
  metavar: 'TIME',
  expected: 'a time of at least 5m such as 30m or 1h30m, or 0s for ever',
  form: durationForm(MIN_CLAIM_EXPIRY_MS, Number.POSITIVE_INFINITY, true),
  parse: (text) => readClaimExpiry(text, '', new Faults()),
};
