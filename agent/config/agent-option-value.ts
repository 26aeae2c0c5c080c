import { parseCidr } from '../../crd/ip-text.ts';
import { INTERFACE_NAME_RULE, isInterfaceName } from '../../runtime/interface-name.ts';
import { listOf, type OptionValue, textValue } from '../../runtime/settings/option-value.ts';

const MIN_MTU = 1280;
/** Largest packet of IPv4, bytes. */
const MAX_MTU = 65_535;

/**
 * An MTU in bytes; 0 takes the MTU of the ENI. The minimum is what IPv6 requires of every link. @see RFC 8200 section 5
 */
export const mtuValue: OptionValue<number> = {
  metavar: 'NUMBER',
  expected: `0, or a whole number from ${MIN_MTU} to ${MAX_MTU}`,
  parse: (text) => {
    const mtu = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    return mtu === 0 || (mtu >= MIN_MTU && mtu <= MAX_MTU) ? mtu : undefined;
  },
};

const MARK_BITS = 8;
/** The mark of connections that came in through the primary interface. */
const NODEPORT_MARK = 0x80n;

/** The bits of the packet mark that hold the slot of an ENI: 255 slots need eight adjacent bits. */
export const markMaskValue: OptionValue<number> = {
  metavar: 'MASK',
  expected: 'at least 8 bits in a row without bit 0x80, such as 0x00ff0000',
  parse: (text) => {
    if (!/^(0x[0-9a-f]{1,8}|\d{1,10})$/i.test(text)) return undefined;
    const mask = BigInt(text);
    if (mask === 0n || mask > 0xffff_ffffn || (mask & NODEPORT_MARK) !== 0n) return undefined;
    const bits = mask.toString(2).replace(/0+$/, '');
    return /^1+$/.test(bits) && bits.length >= MARK_BITS ? Number(mask) : undefined;
  },
};

/** The name of a network interface; '' detects it. */
export const interfaceValue: OptionValue<string> = {
  metavar: 'NAME',
  expected: `${INTERFACE_NAME_RULE}; or '' to find it`,
  parse: (text) => (text === '' || isInterfaceName(text) ? text : undefined),
};

/** The URL of the API server; '' takes that of the kubeconfig, else the cluster's own. */
export const masterValue = textValue(
  /^(https?:\/\/[^\s/?#]+)?$/,
  'URL',
  "a URL such as https://10.0.0.1:6443, or '' for the kubeconfig's or the cluster's own",
);

const cidrValue: OptionValue<string> = {
  metavar: 'CIDR',
  expected: 'a network such as 10.0.0.0/16',
  parse: (text) => (parseCidr(text) === undefined ? undefined : text),
};

/** A list of networks. */
export const cidrsValue = listOf(cidrValue);
