"""The configuration of OpenIPMI's simulator: a BMC with one user, a chassis that a program switches, SOL."""

from __future__ import annotations

USER = "lab"

_LAN = """\
name "{name}"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback md5
    allowed_auths_user md5
    allowed_auths_operator md5
    allowed_auths_admin md5
    guid a123456789abcdefa123456789abcdef
  endlan
{sol}  chassis_control "{switch}"
  user 1 false "" "" user 10 md5
  user 2 true "{user}" "{password}" admin 10 md5
"""

CONTROLLER = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""


def lan_config(name: str, port: int, switch: str, password: str, serial_port: int | None) -> str:
    """Return it. switch: the command that switches; serial_port: of the console, None for no SOL."""
    sol = f'  sol "tcp:127.0.0.1:{serial_port}" 115200\n' if serial_port else ""
    return _LAN.format(name=name, port=port, switch=switch, user=USER, password=password, sol=sol)
