import { parseCidr } from '../../crd/ip-text.ts';
import { INTERFACE_NAME_RULE, isInterfaceName } from '../../runtime/interface-name.ts';
import { isLoopbackAddress } from '../../runtime/loopback-address.ts';
import { listenValue, listOf, type OptionValue } from '../../runtime/settings/option-value.ts';
import { integerRange } from '../../runtime/settings/value-form.ts';

const MIN_MTU = 1280;
/** Largest packet of IPv4, bytes. */
const MAX_MTU = 65_535;

/**
 * An MTU in bytes; 0 takes the MTU of the ENI. The minimum is what IPv6 requires of every link. @see RFC 8200 section 5
 */
export const mtuValue: OptionValue<number> = {
  metavar: 'NUMBER',
  expected: `0, or a whole number from ${MIN_MTU} to ${MAX_MTU}`,
  form: { kind: 'number', min: MIN_MTU, max: MAX_MTU, other: 0 },
  parse: (text) => {
    const mtu = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    return mtu === 0 || (mtu >= MIN_MTU && mtu <= MAX_MTU) ? mtu : undefined;
  },
};

const MARK_BITS = 8;
/** The mark of connections that came in through the primary interface. */
const NODEPORT_MARK = 0x80n;

/** Eight or more bits in a row as digits of a hexadecimal number. */
const MARK_RUN = '[137]?[fF]{2,6}[8cCeE]?|[137][fF][eE]|[37][fF][cC]|7[fF]8';

/** The bits of the packet mark that hold the slot of an ENI: 255 slots need eight adjacent bits. */
export const markMaskValue: OptionValue<number> = {
  metavar: 'MASK',
  expected: 'at least 8 bits in a row without bit 0x80, such as 0x00ff0000',
  form: { kind: 'text', body: `(0[xX]0*(${MARK_RUN})0{2,6}|${integerRange(0xff00, 0xffff_ff00)})` },
  parse: (text) => {
    if (!/^(0x[0-9a-f]{1,8}|\d{1,10})$/i.test(text)) return undefined;
    const mask = BigInt(text);
    if (mask === 0n || mask > 0xffff_ffffn || (mask & NODEPORT_MARK) !== 0n) return undefined;
    const bits = mask.toString(2).replace(/0+$/, '');
    return /^1+$/.test(bits) && bits.length >= MARK_BITS ? Number(mask) : undefined;
  },
};

/** The name of a network interface that the agent makes. */
export const bridgeValue: OptionValue<string> = {
  metavar: 'NAME',
  expected: INTERFACE_NAME_RULE,
  form: { kind: 'text', body: '[^/:%\\s]{1,15}' },
  parse: (text) => (isInterfaceName(text) ? text : undefined),
};

/** The name of a network interface; '' detects it. */
export const interfaceValue: OptionValue<string> = {
  metavar: 'NAME',
  expected: `${INTERFACE_NAME_RULE}; or '' to find it`,
  form: { kind: 'text', body: '([^/:%\\s]{1,15})?' },
  parse: (text) => (text === '' || isInterfaceName(text) ? text : undefined),
};

const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const IPV4_BODY = `${OCTET}(\\.${OCTET}){3}`;
/** Digits and colons: which of them are an address is for the program. */
const IPV6_BODY = '[0-9a-fA-F]*:[0-9a-fA-F:.]*';

const cidrValue: OptionValue<string> = {
  metavar: 'CIDR',
  expected: 'a network such as 10.0.0.0/16',
  form: { kind: 'text', body: `(${IPV4_BODY}/${integerRange(0, 32)}|${IPV6_BODY}/${integerRange(0, 128)})` },
  parse: (text) => (parseCidr(text) === undefined ? undefined : text),
};

/** A list of networks. */
export const cidrsValue = listOf(cidrValue);

/** A loopback address and port to listen on; '' for none. */
export const loopbackListenValue: OptionValue<string> = {
  metavar: listenValue.metavar,
  // Only of a caller on this machine the kernel knows who it is.
  expected: "a loopback address such as 127.0.0.1:61677, as callers are looked up on this node; or '' for none",
  form: { kind: 'text', body: `((127(\\.[0-9]{1,3}){3}|\\[::1\\]):${integerRange(1, 65_535)})?` },
  parse: (text) => (text === '' || isLoopbackAddress(text) ? listenValue.parse(text) : undefined),
};
