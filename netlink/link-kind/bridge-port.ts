import { u8, u16, u32 } from '../codec.ts';
import { attribute } from '../field.ts';
import { type MessageOf, messageCodec } from '../message-codec.ts';
import {
  IFLA_BRPORT_BCAST_FLOOD,
  IFLA_BRPORT_COST,
  IFLA_BRPORT_ISOLATED,
  IFLA_BRPORT_LEARNING,
  IFLA_BRPORT_LOCKED,
  IFLA_BRPORT_MODE,
  IFLA_BRPORT_PRIORITY,
  IFLA_BRPORT_PROXYARP,
  IFLA_BRPORT_STATE,
  IFLA_BRPORT_UNICAST_FLOOD,
} from '../uapi/if-link.ts';

/** Parameters of a port of a bridge that decide where its frames go. @see uapi/linux/if_link.h IFLA_BRPORT_* */
export const BRIDGE_PORT = messageCodec('bridge port', 0, {
  state: attribute(IFLA_BRPORT_STATE, u8),
  priority: attribute(IFLA_BRPORT_PRIORITY, u16),
  cost: attribute(IFLA_BRPORT_COST, u32),
  mode: attribute(IFLA_BRPORT_MODE, u8),
  learning: attribute(IFLA_BRPORT_LEARNING, u8),
  unicastFlood: attribute(IFLA_BRPORT_UNICAST_FLOOD, u8),
  proxyarp: attribute(IFLA_BRPORT_PROXYARP, u8),
  bcastFlood: attribute(IFLA_BRPORT_BCAST_FLOOD, u8),
  isolated: attribute(IFLA_BRPORT_ISOLATED, u8),
  locked: attribute(IFLA_BRPORT_LOCKED, u8),
});

/** Parameters of a bridge port as the kernel reports them. */
export type BridgePort = MessageOf<typeof BRIDGE_PORT>;
