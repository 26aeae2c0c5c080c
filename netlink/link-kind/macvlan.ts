import { u32 } from '../codec.ts';
import { attribute } from '../field.ts';
import { type MessageOf, messageCodec } from '../message-codec.ts';
import { IFLA_MACVLAN_MODE } from '../uapi/if-link.ts';

/** Parameters of a MACVLAN or MACVTAP. @see uapi/linux/if_link.h IFLA_MACVLAN_* */
export const MACVLAN_INFO = messageCodec('macvlan', 0, {
  /** MACVLAN_MODE_*: 1 private, 2 vepa, 4 bridge, 8 passthru, 16 source. */
  mode: attribute(IFLA_MACVLAN_MODE, u32),
});

/** Parameters of a MACVLAN as the kernel reports them. */
export type MacvlanInfo = MessageOf<typeof MACVLAN_INFO>;
