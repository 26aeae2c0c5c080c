import { MIN_CLAIM_EXPIRY_MS, readClaimExpiry } from '../../crd/pod-network-request.ts';
import { Faults } from '../../runtime/decode.ts';
import { listOf, type OptionValue, textValue } from '../../runtime/settings/option-value.ts';
import { durationForm } from '../../runtime/settings/value-form.ts';

/** A cluster id. */
export const clusterIdValue = textValue(/^cls-[a-z0-9]{1,32}$/, 'ID', 'the id of the cluster, such as cls-3x5v7b9d');

/** A list of subnet ids. */
export const subnetIdsValue = listOf(textValue(/^subnet-[a-z0-9]{1,32}$/, 'ID', 'a subnet such as subnet-a1b2c3d4'));

/** A list of security group ids. */
export const securityGroupIdsValue = listOf(
  textValue(/^sg-[a-z0-9]{1,32}$/, 'ID', 'a security group such as sg-a1b2c3d4'),
);

/** How long a static address is retained; milliseconds, 0 without limit. */
export const claimExpiryValue: OptionValue<number> = {
  metavar: 'TIME',
  expected: 'a time of at least 5m such as 30m or 1h30m, or 0s forever',
  form: durationForm(MIN_CLAIM_EXPIRY_MS, Number.POSITIVE_INFINITY, true),
  parse: (text) => readClaimExpiry(text, '', new Faults()),
};
