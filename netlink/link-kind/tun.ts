import { u8, u32 } from '../codec.ts';
import { attribute } from '../field.ts';
import { type MessageOf, messageCodec } from '../message-codec.ts';
import {
  IFLA_TUN_GROUP,
  IFLA_TUN_MULTI_QUEUE,
  IFLA_TUN_NUM_DISABLED_QUEUES,
  IFLA_TUN_NUM_QUEUES,
  IFLA_TUN_OWNER,
  IFLA_TUN_PERSIST,
  IFLA_TUN_PI,
  IFLA_TUN_TYPE,
  IFLA_TUN_VNET_HDR,
} from '../uapi/if-link.ts';

/** Parameters of a TUN or TAP. @see uapi/linux/if_link.h IFLA_TUN_* */
export const TUN_INFO = messageCodec('tun', 0, {
  /** User id. */
  owner: attribute(IFLA_TUN_OWNER, u32),
  /** Group id. */
  group: attribute(IFLA_TUN_GROUP, u32),
  /** 1 tun, 2 tap. */
  type: attribute(IFLA_TUN_TYPE, u8),
  pi: attribute(IFLA_TUN_PI, u8),
  vnetHdr: attribute(IFLA_TUN_VNET_HDR, u8),
  persist: attribute(IFLA_TUN_PERSIST, u8),
  multiQueue: attribute(IFLA_TUN_MULTI_QUEUE, u8),
  numQueues: attribute(IFLA_TUN_NUM_QUEUES, u32),
  numDisabledQueues: attribute(IFLA_TUN_NUM_DISABLED_QUEUES, u32),
});

/** Parameters of a TUN or TAP as the kernel reports them. */
export type TunInfo = MessageOf<typeof TUN_INFO>;
