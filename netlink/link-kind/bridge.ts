import { u8, u16, u32 } from '../codec.ts';
import { attribute } from '../field.ts';
import { type MessageOf, messageCodec } from '../message-codec.ts';
import {
  IFLA_BR_AGEING_TIME,
  IFLA_BR_FORWARD_DELAY,
  IFLA_BR_HELLO_TIME,
  IFLA_BR_MAX_AGE,
  IFLA_BR_PRIORITY,
  IFLA_BR_STP_STATE,
  IFLA_BR_VLAN_DEFAULT_PVID,
  IFLA_BR_VLAN_FILTERING,
} from '../uapi/if-link.ts';

/** Bridge parameters that a request or a script sets; times in hundredths of a second. @see uapi/linux/if_link.h IFLA_BR_* */
export const BRIDGE_INFO = messageCodec('bridge', 0, {
  forwardDelay: attribute(IFLA_BR_FORWARD_DELAY, u32),
  helloTime: attribute(IFLA_BR_HELLO_TIME, u32),
  maxAge: attribute(IFLA_BR_MAX_AGE, u32),
  ageingTime: attribute(IFLA_BR_AGEING_TIME, u32),
  stpState: attribute(IFLA_BR_STP_STATE, u32),
  bridgePriority: attribute(IFLA_BR_PRIORITY, u16),
  vlanFiltering: attribute(IFLA_BR_VLAN_FILTERING, u8),
  vlanDefaultPvid: attribute(IFLA_BR_VLAN_DEFAULT_PVID, u16),
});

/** Parameters of a bridge as the kernel reports them. */
export type BridgeInfo = MessageOf<typeof BRIDGE_INFO>;
