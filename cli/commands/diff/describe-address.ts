import { type Operation, renderAddress } from '../../../dataplane/operation.ts';
import type { FindingId } from '../../../inspection/catalogue/catalogue.ts';

/** Describes an address that is missing, by the finding `missing`, or that has an attribute of no plan. */
export function describeAddress(
  { address, before }: Operation & { readonly kind: 'add-address' },
  missing: FindingId,
): { readonly id: FindingId; readonly what: string } {
  const { ifname, prefix } = address;
  if (before === undefined) return { id: missing, what: `${ifname} does not have its address ${prefix}` };
  const what = `address is "${renderAddress(before)}", should be "${renderAddress(address)}"`;
  return { id: 'attribute-changed', what };
}
