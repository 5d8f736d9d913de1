"""UsernameTokens: who calls is said in the envelope, as it is or by a digest, and no digest counts twice."""

import contextlib
import time

import aiohttp
import pytest

from palio.broker.access.tokens import read_tokens, revoke_tokens
from palio.broker.soap import username_token as of_tokens
from palio.broker.soap.settings import SoapSettings
from palio.broker.soap.termination import write_moment
from tests.broker.gateway.calling import LOCAL
from tests.security.world import World
from tests.soap.speaking import EVENTS, S11, S12, create, pull, speak, username_token

TIME = "<tds:GetSystemDateAndTime/>"
ASKED = "<tev:GetEventProperties/>"


@contextlib.asynccontextmanager
async def scene(folder):
    folder.mkdir()
    world = World(folder)
    world.add("anna", "true", "true")
    world.digest = world.token("anna", digest=True)
    broker = world.broker(journal=True, http=True, gateway=LOCAL, soap=SoapSettings(enabled=True))
    await broker.start()
    try:
        async with aiohttp.ClientSession(broker.url) as session:
            yield world, session
    finally:
        await broker.stop()


def now(later=0.0):
    return write_moment(time.time() + later)


@pytest.mark.parametrize("version", [S11, S12])
async def test_strangers_may_ask_for_the_time_only(tmp_path, version):
    async with scene(tmp_path / "access") as (_, session):
        said = await speak(session, "/onvif/device_service", TIME, version=version)
        assert said.text("tt:Year") == str(time.gmtime().tm_year)
        for where, body in (
            ("/onvif/device_service", "<tds:GetServices/>"),
            (EVENTS, ASKED),
            (EVENTS, create()),
            ("/onvif/subscriptions/x", pull()),
            ("/onvif/subscriptions/x", "<wsnt:Unsubscribe/>"),
        ):
            assert (await speak(session, where, body, version=version)).status == 401


async def test_a_token_is_a_password_or_a_digest_or_a_header_of_http(tmp_path):
    async with scene(tmp_path / "access") as (world, session):
        for header in (
            username_token("anna", world.tokens["anna"]),
            username_token("anna", world.digest),
            username_token("anna", world.digest, now()),
            username_token("anna", world.digest, now(-250)),
            username_token("anna", world.digest, now(250)),
            username_token(world.digest.split("_")[1], world.digest, now()),
        ):
            assert (await speak(session, EVENTS, ASKED, header=header)).status == 200
        session.headers["Authorization"] = f"Bearer {world.tokens['anna']}"
        assert (await speak(session, EVENTS, ASKED)).status == 200


async def test_what_proves_nothing_is_refused(tmp_path):
    async with scene(tmp_path / "access") as (world, session):
        for header, part in (
            (username_token("bruno", world.tokens["anna"]), "not one of 'bruno'"),
            (username_token("anna", "palio"), "not known here"),
            (username_token("anna", world.tokens["anna"], now()), "is wrong"),  # its secret is not kept
            (username_token("bruno", world.digest, now()), "is wrong"),
            (username_token("anna", world.digest, now(-400)), "clocks"),
            (username_token("anna", world.digest, now(400)), "clocks"),
            (username_token("anna", world.digest, "yesterday"), "moment"),
            (username_token("anna", ""), "needs a name"),
            (username_token("anna", world.digest, now()).replace("#PasswordDigest", "#Other"), "type"),
            (username_token("anna", world.digest, now()).replace("wsse:Nonce", "wsse:Once"), "Nonce"),
            (username_token("anna", world.digest, now()).replace("<wsse:Nonce>", "<wsse:Nonce>!"), "base64"),
        ):
            refused = await speak(session, EVENTS, ASKED, header=header)
            assert refused.status == 401
            assert part in refused.reason, refused.reason


async def test_a_digest_counts_once(tmp_path):
    async with scene(tmp_path / "access") as (world, session):
        header = username_token("anna", world.digest, now())
        assert (await speak(session, EVENTS, ASKED, header=header)).status == 200
        again = await speak(session, EVENTS, ASKED, header=header)
        assert (again.status, "before" in again.reason) == (401, True)


async def test_digests_are_remembered_up_to_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(of_tokens, "MAX_NONCES", 3)
    async with scene(tmp_path / "access") as (world, session):
        told = [
            (await speak(session, EVENTS, ASKED, header=username_token("anna", world.digest, now()))).status
            for _ in range(4)
        ]
        assert told == [200, 200, 200, 503]
        # What a stranger sends fills nothing.
        assert (await speak(session, EVENTS, ASKED, header=username_token("anna", "x", now()))).status == 401


async def test_a_token_that_was_revoked_proves_nothing_more(tmp_path):
    async with scene(tmp_path / "access") as (world, session):
        header = username_token("anna", world.digest, now())
        [id] = [one.id for one in read_tokens(world.folder).values() if one.secret]
        revoke_tokens(world.folder, [id])
        assert (await speak(session, EVENTS, ASKED, header=header)).status == 401


async def test_subscriptions_belong_to_whoever_made_them(tmp_path):
    async with scene(tmp_path / "access") as (world, session):
        world.add("bruno", "true", "true")
        mine, his = (username_token(who, world.tokens[who]) for who in ("anna", "bruno"))
        made = await speak(session, EVENTS, create(), header=mine)
        where = "/" + made.text("wsa:Address").split("/", 3)[3]
        for body in (pull("PT0S"), "<wsnt:Unsubscribe/>", "<wsnt:PauseSubscription/>", "<wsnt:Renew/>"):
            assert (await speak(session, where, body, header=his)).fault == "ResourceUnknownFault"
        assert (await speak(session, where, pull("PT0S"), header=mine)).status == 200
