/** Longest name of a network interface in bytes, without its final zero. @see uapi/linux/if.h IFNAMSIZ */
const MAX_INTERFACE_NAME_BYTES = 15;

/** Names that no interface may have: `.` and `..` as files of sysfs, the others as those of sysctl. */
const RESERVED: readonly string[] = ['.', '..', 'all', 'default'];

/** Text after "expected …" when a value is not an interface name. */
export const INTERFACE_NAME_RULE = `an interface name: 1 to ${MAX_INTERFACE_NAME_BYTES} bytes, no "/", ":", "%" or white space, not ".", "..", "all" or "default"`;

/**
 * Reports whether the kernel would give an interface exactly this name. A "%d" in a name is not allowed: the kernel would
 * replace it by a number of its choice.
 * @see linux/net/core/dev.c dev_valid_name(), __dev_alloc_name(), sysctl_dev_name_is_allowed()
 */
export function isInterfaceName(name: string): boolean {
  const bytes = Buffer.byteLength(name);
  return bytes > 0 && bytes <= MAX_INTERFACE_NAME_BYTES && !/[/:%\s]/.test(name) && !RESERVED.includes(name);
}
